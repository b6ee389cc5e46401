#include "passes/merge_float8.h"

#include "graph/rewriter.h"
#include "ops/float8_scales.h"
#include "ops/float8_weights.h"
#include "ops/movement.h"
#include "ops/multi_cast.h"
#include "ops/pointwise.h"
#include "passes/weight_copies.h"

#include <algorithm>
#include <optional>

namespace tokamak {
namespace {

// A matrix as it is read: a parameter, or a copy of it in bf16.
struct Source {
  ValueId parameter = kNoValue;
  ValueId copy = kNoValue;  // none: the parameter itself is read
};

std::optional<Source> scaled_source_of(const Graph& graph, ValueId matrix) {
  ValueId value = behind_views(graph, matrix);
  if (is_parameter(graph, value)) return Source{value};
  int maker = graph.producer(value);
  if (maker < 0 || graph.dtype(value) != DType::kBF16) return {};
  const Node& node = graph.nodes()[size_t(maker)];
  if (node.op != &op::cast && node.op != &op::multi_cast) return {};
  ValueId source = node.inputs[0];
  if (node.op == &op::multi_cast) {
    auto place = std::ranges::find(node.outputs, value) - node.outputs.begin();
    std::span<const ValueId> sources = cast_values(node, size_t(place));
    if (sources.size() > 1) return {};
    source = sources[0];
  }
  ValueId parameter = behind_views(graph, source);
  if (!is_parameter(graph, parameter) || graph.dtype(parameter) != DType::kF32) return {};
  return Source{parameter, value};
}

// By node, whether the pass takes it.
std::vector<bool> find_merged(const Graph& graph) {
  std::vector<bool> merged(graph.nodes().size(), false);
  bool backward = has_backward(graph);
  std::vector<bool> in_states(size_t(graph.num_values()), false);
  for (const Update& update : graph.updates()) in_states[size_t(update.value)] = true;
  for (size_t n = 0; n < merged.size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op != &op::float8_weights) continue;
    bool is_kept = std::ranges::any_of(node.outputs, [&](ValueId output) { return bool(in_states[size_t(output)]); });
    merged[n] = (is_kept || (backward && !node.recompute)) && std::ranges::all_of(node.inputs, [&](ValueId input) {
                  return scaled_source_of(graph, input).has_value();
                });
  }
  return merged;
}

// Whether the value is there when the step begins, or is made by a node that the pass takes, or a copy of a parameter.
bool is_of_parameters(const Graph& graph, const std::vector<bool>& merged, ValueId value) {
  int maker = graph.producer(value);
  return maker < 0 || merged[size_t(maker)] || scaled_source_of(graph, value).has_value();
}

// By node, whether it gives scales of activations that are known so early.
std::vector<bool> find_scales(const Graph& graph, const std::vector<bool>& merged) {
  std::vector<bool> scales(graph.nodes().size(), false);
  bool backward = has_backward(graph);
  for (size_t n = 0; n < scales.size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op != &op::float8_scales || !backward || node.recompute) continue;
    scales[n] = std::ranges::all_of(node.inputs, [&](ValueId v) { return is_of_parameters(graph, merged, v); });
  }
  return scales;
}

class Float8Merger {
 public:
  explicit Float8Merger(const Graph& graph)
      : graph_(graph), merged_(find_merged(graph)), scales_(find_scales(graph, merged_)),
        unneeded_(find_copies_for_float8(graph)), rewriter_(graph) {
    auto first_of = [](const std::vector<bool>& nodes) { return int(std::ranges::find(nodes, true) - nodes.begin()); };
    first_ = std::min(first_of(merged_), first_of(scales_));
    for (size_t n = 0; n < scales_.size(); ++n)
      if (scales_[n]) scales_[n] = std::ranges::all_of(graph.nodes()[n].inputs, [&](ValueId v) { return is_there(v); });
  }

  bool run() {
    for (size_t n = 0; n < merged_.size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (int(n) == first_) make_all(node);
      if (!merged_[n] && !scales_[n]) rewriter_.copy(node);
    }
    return changes_;
  }

  Graph finish() { return rewriter_.finish(); }

 private:
  // Where the first of the nodes stood.
  bool is_there(ValueId value) const {
    int maker = graph_.producer(value);
    return maker < first_ || merged_[size_t(maker)];
  }

  void make_all(const Node& first) {
    GraphBuilder& g = rewriter_.in_place_of(first);
    if (std::ranges::count(merged_, true) > 0) make_weights(g);
    if (std::ranges::count(scales_, true) > 0) make_scales(g);
  }

  void make_scales(GraphBuilder& g) {
    std::vector<Float8Bound> bounds;
    std::vector<ValueId> outputs;
    int nodes = 0;
    for (size_t n = 0; n < scales_.size(); ++n) {
      if (!scales_[n]) continue;
      Node node = graph_.nodes()[n];
      node.inputs = rewriter_.map(node.inputs);
      std::ranges::copy(float8_bounds(node), std::back_inserter(bounds));
      std::ranges::copy(node.outputs, std::back_inserter(outputs));
      changes_ |= ++nodes > 1;
    }
    float8_scales(g, bounds);
    replace(outputs, g);
  }

  void make_weights(GraphBuilder& g) {
    int nodes = 0;
    ValueIds weights;
    std::vector<StoredCopies> stored;
    std::vector<ValueId> outputs;
    for (size_t n = 0; n < merged_.size(); ++n) {
      if (!merged_[n]) continue;
      const Node& node = graph_.nodes()[n];
      changes_ |= ++nodes > 1;
      for (ValueId input : node.inputs) weights.push_back(read(g, input));
      std::ranges::copy(stored_copies(node), std::back_inserter(stored));
      std::ranges::copy(node.outputs, std::back_inserter(outputs));
    }
    float8_weights(g, std::move(weights), stored);
    replace(outputs, g);
  }

  // By those of the last node.
  void replace(const std::vector<ValueId>& outputs, GraphBuilder& g) {
    const ValueIds made = g.graph().nodes().back().outputs;
    for (size_t i = 0; i < outputs.size(); ++i) rewriter_.replace(outputs[i], made[i]);
  }

  ValueId read(GraphBuilder& g, ValueId matrix) {
    Source source = *scaled_source_of(graph_, matrix);
    bool reads_copy =
        source.copy != kNoValue && !unneeded_[size_t(source.copy)] && graph_.producer(source.copy) < first_;
    changes_ |= source.copy != kNoValue && !reads_copy;
    return reshape(g, rewriter_.map(reads_copy ? source.copy : source.parameter), graph_.shape(matrix));
  }

  const Graph& graph_;
  std::vector<bool> merged_, scales_, unneeded_;
  Rewriter rewriter_;
  int first_ = -1;
  bool changes_ = false;
};

}  // namespace

bool merge_float8(Graph& graph, const PassContext&) {
  Float8Merger merger(graph);
  if (!merger.run()) return false;
  graph = merger.finish();
  return true;
}

std::vector<bool> find_copies_for_float8(const Graph& graph) {
  std::vector<bool> merged = find_merged(graph), escaping = find_escaping(graph);
  // By value: whether a node that is taken reads it, or a view of it, and whether anything else does.
  std::vector<bool> taken(escaping.size(), false), others = escaping;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    bool view = node.op == &op::reshape;
    for (ValueId input : node.inputs) {
      if (merged[n] || (view && taken[size_t(node.outputs[0])])) taken[size_t(input)] = true;
      if (!merged[n] && (!view || others[size_t(node.outputs[0])])) others[size_t(input)] = true;
    }
  }
  std::vector<bool> found(escaping.size(), false);
  for (const Node& node : graph.nodes())
    if (node.op == &op::cast)
      for (ValueId output : node.outputs) found[size_t(output)] = taken[size_t(output)] && !others[size_t(output)];
  return found;
}

}  // namespace tokamak
