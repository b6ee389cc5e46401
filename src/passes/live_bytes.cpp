#include "passes/live_bytes.h"

#include "graph/op_def.h"

#include <algorithm>

namespace tokamak {

int64_t peak_live_bytes(const Graph& graph) {
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
  int64_t live = 0, peak = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (ValueId value : nodes[n].outputs) {
      if (storage[size_t(value)] != value || in_argument[size_t(value)]) continue;
      live += num_bytes(graph.type(value));
      freed[last_use[size_t(value)]] += num_bytes(graph.type(value));
    }
    peak = std::max(peak, live);
    live -= freed[n];
  }
  return peak;
}

}  // namespace tokamak
