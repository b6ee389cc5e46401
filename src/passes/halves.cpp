#include "passes/halves.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/op_def.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <array>
#include <map>

namespace tokamak {
namespace {

class Doubler {
 public:
  Doubler(const Graph& half, int64_t ranks) : half_(half), ranks_(ranks), whole_(half.name()), g_(whole_) {}

  Graph run() {
    for (const Argument& argument : half_.arguments()) take(argument);
    for (const Node& node : half_.nodes()) copy(node);
    auto [first, second] = values_.at(half_.find_result("loss"));
    ValueId sum = add(g_, first, second);
    bool is_mean = half_.find_argument("loss_weight") == kNoValue;
    whole_.add_result("loss", is_mean ? mul(g_, sum, constant(g_, 0.5)) : sum);
    return std::move(whole_);
  }

 private:
  using Pair = std::array<ValueId, 2>;  // one value twice: both read it

  void take(const Argument& argument) {
    ValueType type = half_.type(argument.value);
    bool is_divided = argument.kind == Argument::Kind::kInput && !type.shape.empty();
    if (is_divided) type.shape[0] *= 2;
    ValueId value = whole_.add_argument(argument.kind, argument.name, type, argument.layout);
    values_[argument.value] = is_divided ? halves_of(value) : Pair{value, value};
  }

  Pair halves_of(ValueId whole) {
    Shape shape = g_.shape(whole), half = shape, parts = shape;
    half[0] /= 2;
    TOKAMAK_CHECK(half[0] % ranks_ == 0, "half of {} sequences on {} ranks", shape[0], ranks_);
    parts[0] = half[0] / ranks_;
    parts.insert(parts.begin(), {ranks_, 2});
    ValueId apart = reshape(g_, whole, parts);
    Pair halves;
    for (int64_t i : {0, 1}) halves[size_t(i)] = reshape(g_, slice(g_, apart, 1, i, 1), half);
    return halves;
  }

  void copy(const Node& node) {
    std::array<std::vector<ValueId>, 2> inputs;
    for (ValueId input : node.inputs)
      for (size_t i : {0, 1}) inputs[i].push_back(values_.at(input)[i]);
    g_.append_like(node);
    std::vector<ValueId> first = g_.add(*node.op, inputs[0], node.attrs, node.body);
    std::vector<ValueId> second = inputs[0] == inputs[1] ? first : g_.add(*node.op, inputs[1], node.attrs, node.body);
    for (size_t i = 0; i < first.size(); ++i) values_[node.outputs[i]] = {first[i], second[i]};
  }

  const Graph& half_;
  int64_t ranks_;
  Graph whole_;
  GraphBuilder g_;
  std::map<ValueId, Pair> values_;  // of the half's
};

}  // namespace

bool can_be_halved(int64_t sequences, int64_t tensor_ranks) {
  bool is_cut = sequences % tensor_ranks == 0;
  return sequences % 2 == 0 && is_cut == (sequences / 2 % tensor_ranks == 0);
}

Graph in_halves(const Graph& half, int64_t ranks) { return Doubler(half, ranks).run(); }

std::vector<int> find_halves(const Graph& graph) {
  std::vector<bool> is_input(size_t(graph.num_values()), false);  // a view of a batch
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kInput && !graph.shape(argument.value).empty())
      is_input[size_t(argument.value)] = true;
  std::vector<int> of_values(is_input.size(), 0), halves;
  for (const Node& node : graph.nodes()) {
    int half = 0;
    for (ValueId input : node.inputs) half |= of_values[size_t(input)];
    bool reads_input = !node.inputs.empty() && is_input[size_t(node.inputs[0])];
    if (reads_input && node.op == &op::slice && node.attrs.get_int("dim") == 1 && graph.shape(node.inputs[0])[1] == 2 &&
        node.attrs.get_int("size") == 1)
      half |= 1 << node.attrs.get_int("begin");
    for (ValueId output : node.outputs) {
      of_values[size_t(output)] = half;
      is_input[size_t(output)] = reads_input && node.op->fusion == Fusion::kView;
    }
    halves.push_back(half);
  }
  return halves;
}

}  // namespace tokamak
