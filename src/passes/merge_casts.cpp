#include "passes/merge_casts.h"

#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/movement.h"
#include "ops/multi_cast.h"
#include "ops/pointwise.h"
#include "passes/merge_float8.h"
#include "passes/weight_copies.h"

#include <algorithm>
#include <map>
#include <set>

namespace tokamak {
namespace {

class CastMerger {
 public:
  explicit CastMerger(const Graph& graph)
      : graph_(graph), users_(find_users(graph)), for_float8_(find_copies_for_float8(graph)),
        has_backward_(has_backward(graph)), rewriter_(graph) {
    for (const Update& update : graph.updates()) kept_.insert(update.value);
    for (const Node& node : graph.nodes())
      if (ValueId parameter = cast_parameter(node); parameter != kNoValue) {
        ValueIds& all = parameters_[family_of(node)];
        if (std::find(all.begin(), all.end(), parameter) == all.end()) all.push_back(parameter);
      }
    std::erase_if(parameters_, [](const auto& family) { return family.second.size() < 2; });
  }

  bool any() const { return !parameters_.empty(); }

  Graph rewrite() {
    for (const Node& node : graph_.nodes()) {
      ValueId parameter = cast_parameter(node);
      if (parameter != kNoValue && parameters_.count(family_of(node)))
        rewriter_.replace(node.outputs[0], merged(node, parameter));
      else
        rewriter_.copy(node);
    }
    return rewriter_.finish();
  }

 private:
  // Casts that become one: to this type, for this all_gather alone (-1: for the whole step).
  using Family = std::pair<DType, int>;

  Family family_of(const Node& node) const {
    std::span<const int> users = users_[size_t(node.outputs[0])];
    bool is_gathered = users.size() == 1 && graph_.nodes()[size_t(users[0])].op == &op::all_gather;
    return {graph_.dtype(node.outputs[0]), is_gathered ? users[0] : -1};
  }

  // The parameter that the node casts to a low type, or kNoValue.
  ValueId cast_parameter(const Node& node) const {
    if (node.op != &op::cast || for_float8_[size_t(node.outputs[0])]) return kNoValue;
    bool is_for_step = family_of(node).second < 0, is_kept = kept_.contains(node.outputs[0]);
    if (is_for_step && !is_kept && (!has_backward_ || node.phase == Phase::kBackward || node.recompute))
      return kNoValue;
    DType to = graph_.dtype(node.outputs[0]);
    if (to != DType::kBF16 && to != DType::kF16) return kNoValue;
    ValueId source = behind_views(graph_, node.inputs[0]);
    return is_parameter(graph_, source) && is_float(graph_.dtype(source)) ? source : kNoValue;
  }

  // The parameter's copy in the shape that the cast had; the first that is asked for makes all of its family.
  ValueId merged(const Node& node, ValueId parameter) {
    const ValueType& type = graph_.type(node.outputs[0]);
    GraphBuilder& g = rewriter_.in_place_of(node);
    const ValueIds& all = parameters_.at(family_of(node));
    ValueIds& copies = copies_[family_of(node)];
    if (copies.empty()) copies = multi_cast(g, rewriter_.map(all), type.dtype);
    size_t index = size_t(std::find(all.begin(), all.end(), parameter) - all.begin());
    return reshape(g, copies[index], type.shape);
  }

  const Graph& graph_;
  Users users_;
  std::vector<bool> for_float8_;  // by value: merge_float8 does without it
  std::set<ValueId> kept_;        // in states
  bool has_backward_;
  Rewriter rewriter_;
  std::map<Family, ValueIds> parameters_;  // in order, each once
  std::map<Family, ValueIds> copies_;      // what became of them, in the new graph
};

}  // namespace

bool merge_casts(Graph& graph, const PassContext&) {
  CastMerger merger(graph);
  if (!merger.any()) return false;
  graph = merger.rewrite();
  return true;
}

}  // namespace tokamak
