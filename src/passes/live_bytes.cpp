#include "passes/live_bytes.h"

#include "graph/op_def.h"

#include <algorithm>

namespace tokamak {

namespace {

// By value: whether a micro-batch has its own. What is made of parameters alone is there once.
std::vector<bool> find_own(const Graph& graph) {
  std::vector<bool> own(size_t(graph.num_values()), false);
  for (const Argument& argument : graph.arguments())
    own[size_t(argument.value)] = argument.kind == Argument::Kind::kInput || argument.spec.role == Role::kResidual;
  for (const Node& node : graph.nodes())
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) { return own[size_t(input)]; }))
      for (ValueId output : node.outputs) own[size_t(output)] = true;
  return own;
}

}  // namespace

int64_t peak_live_bytes(const Graph& graph, int64_t held) {
  const auto& nodes = graph.nodes();
  std::vector<ValueId> storage(size_t(graph.num_values()));  // by value: the value whose bytes it shares
  std::vector<size_t> last_use(size_t(graph.num_values()), 0);
  for (ValueId v = 0; v < graph.num_values(); ++v) storage[size_t(v)] = v;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].op->fusion == Fusion::kView)
      storage[size_t(nodes[n].outputs[0])] = storage[size_t(nodes[n].inputs[0])];
    for (ValueId value : nodes[n].inputs) last_use[size_t(storage[size_t(value)])] = n;
    for (ValueId value : nodes[n].outputs) last_use[size_t(storage[size_t(value)])] = n;
  }
  std::vector<bool> escaping = find_escaping(graph);
  for (ValueId v = 0; v < graph.num_values(); ++v)
    if (escaping[size_t(v)]) last_use[size_t(storage[size_t(v)])] = nodes.size();
  std::vector<bool> in_argument(size_t(graph.num_values()), false);
  for (const Update& update : graph.updates()) in_argument[size_t(update.value)] = true;
  std::vector<int64_t> freed(nodes.size() + 1, 0);
  auto is_backward = [](const Node& node) { return node.phase == Phase::kBackward; };
  auto border = size_t(std::find_if(nodes.begin(), nodes.end(), is_backward) - nodes.begin());
  const std::vector<bool> own = held > 1 ? find_own(graph) : std::vector<bool>();
  int64_t live = 0, peak = 0, kept = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (ValueId value : nodes[n].outputs) {
      if (storage[size_t(value)] != value || in_argument[size_t(value)]) continue;
      if (held > 1 && !own[size_t(value)]) continue;
      int64_t bytes = num_bytes(graph.type(value));
      size_t last = last_use[size_t(value)];
      live += bytes;
      freed[last] += bytes;
      if (n < border && last >= border) kept += bytes;
    }
    peak = std::max(peak, live);
    live -= freed[n];
  }
  return peak + (held - 1) * kept;
}

}  // namespace tokamak
