// Every op's rule against its reference, by brute force: each factor that may be cut is cut, the parts of the inputs
// go through the op, and what comes out, put together as the rule says, must be the op's outputs.
#include "ops/sharding_rules.h"

#include "base/error.h"
#include "ops/all_ops.h"
#include "ops/collective.h"
#include "ops/interpret.h"
#include "tests/ops/harness.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace tokamak::test {
namespace {

using Tensors = std::vector<HostTensor>;

// What is left of low-precision outputs after adding up parts that were rounded one by one.
double tolerance_of(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16 ? 0.05 : 1e-9; }

ValueId mirrored_if(bool mirrored, GraphBuilder& g, ValueId x, CutDim at, int64_t parts) {
  return mirrored ? mirror_parts(g, x, at, parts) : x;
}

HostTensor part_of(const HostTensor& whole, CutDim at, bool mirrored, int64_t parts, int64_t index) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId x = g.input("x", whole.type), coordinate = g.input("r", {DType::kF32, {}});
  graph.add_result("y", part(g, mirrored_if(mirrored, g, x, at, parts), coordinate, parts, at));
  return interpret(graph, {whole, HostTensor({DType::kF32, {}}, {double(index)})}).results[0];
}

// Runs a collective over one axis whose ranks have these tensors, and returns what the first of them gets.
template <typename Collective>
HostTensor run_together(const Tensors& parts, const Collective& collective) {
  Graph graph;
  GraphBuilder g(graph);
  MeshAxis axis{"axis", int64_t(parts.size())};
  graph.add_result("y", collective(g, g.input("x", parts[0].type), axis));
  std::vector<Tensors> arguments;
  for (const HostTensor& part : parts) arguments.push_back({part});
  return interpret_ranks(graph, {{axis}}, arguments)[0].results[0];
}

struct Whole {
  Graph graph;
  Tensors inputs, outputs;
  ValueTypes types;
  ShardingRule rule;

  explicit Whole(const OpCase& c) : graph(case_graph(c)), inputs(case_arguments(c)) {
    outputs = interpret(graph, inputs).results;
    for (const HostTensor& output : outputs) types.push_back(output.type);
    rule = sharding_rule(spec_of(graph, node()), types);
  }
  const Node& node() const { return graph.nodes()[0]; }
};

// One way to cut the op's work.
struct WayToCut {
  int factor;
  int64_t blocks, size;
  bool mirrored = false;
  CutDim of(const FactorPlace& place) const { return {place.dim, place.blocks * blocks}; }
};

// What the ranks have of the node's inputs, in the order of its inputs.
std::vector<Tensors> cut_inputs(const Whole& whole, const WayToCut& cut) {
  std::vector<Tensors> ranks(size_t(cut.size));
  for (size_t i = 0; i < whole.inputs.size(); ++i) {
    FactorPlace place = place_of(whole.rule, whole.rule.inputs[i], cut.factor);
    for (int64_t r = 0; r < cut.size; ++r)
      ranks[size_t(r)].push_back(place.dim < 0 ? whole.inputs[i]
                                               : part_of(whole.inputs[i], cut.of(place), cut.mirrored, cut.size, r));
  }
  return ranks;
}

ValueIds append_part(GraphBuilder& g, const Whole& whole, const Node& part, const WayToCut& cut, const ValueIds& inputs,
                     ValueId coordinate) {
  const Factor& factor = whole.rule.factors[size_t(cut.factor)];
  int64_t length = factor.size / (cut.blocks * cut.size);
  PlacedCut placed{cut.factor, cut.blocks, length, cut.mirrored, {"axis", cut.size}, coordinate};
  if (factor.placed) return part.op->sharding.place(g, part, inputs, placed, {});
  if (factor.numbered) return part.op->sharding.number(g, part, inputs, {&placed, 1});
  return g.add(*part.op, inputs, part.attrs);
}

// Outputs of all parts.
std::vector<Tensors> run_parts(const Whole& whole, const WayToCut& cut) {
  Node part = whole.node();
  Graph graph;
  GraphBuilder g(graph);
  std::vector<Tensors> arguments = cut_inputs(whole, cut);
  ValueIds inputs;
  std::vector<Shape> input_shapes, output_shapes;
  for (const HostTensor& input : arguments[0]) {
    inputs.push_back(g.input("x" + std::to_string(inputs.size()), input.type));
    input_shapes.push_back(input.shape());
  }
  for (size_t i = 0; i < whole.types.size(); ++i) {
    FactorPlace place = place_of(whole.rule, whole.rule.outputs[i], cut.factor);
    output_shapes.push_back(whole.types[i].shape);
    if (place.dim >= 0) output_shapes.back()[size_t(place.dim)] /= cut.size;
  }
  ValueId coordinate = g.input("coordinate", {DType::kI32, {}});
  for (size_t r = 0; r < arguments.size(); ++r) arguments[r].push_back(HostTensor({DType::kI32, {}}, {double(r)}));
  if (part.op->sharding.of_part) part.op->sharding.of_part(part.attrs, input_shapes, output_shapes);
  ValueIds outputs = append_part(g, whole, part, cut, inputs, coordinate);
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(to_string(g.type(outputs[i])), to_string(ValueType{whole.types[i].dtype, output_shapes[i]}));
    graph.add_result("y" + std::to_string(i), outputs[i]);
  }
  std::vector<Tensors> results;
  for (Interpretation& rank : interpret_ranks(graph, {{{"axis", cut.size}}}, arguments))
    results.push_back(std::move(rank.results));
  return results;
}

// Output i of all parts as one.
HostTensor put_together(const Whole& whole, const WayToCut& cut, size_t i, const std::vector<Tensors>& parts) {
  Tensors of_output;
  for (const Tensors& part : parts) of_output.push_back(part[i]);
  FactorPlace place = place_of(whole.rule, whole.rule.outputs[i], cut.factor);
  if (place.dim >= 0)
    return run_together(of_output, [&](auto& g, ValueId x, const MeshAxis& axis) {
      return mirrored_if(cut.mirrored, g, all_gather(g, x, axis, cut.of(place)), cut.of(place), cut.size);
    });
  Factor::Rest rest = whole.rule.factors[size_t(cut.factor)].rest;
  if (rest == Factor::Rest::kSame) {
    for (const HostTensor& part : of_output) EXPECT_EQ(difference(part, of_output[0]), 0);
    return of_output[0];
  }
  return run_together(of_output, [&](auto& g, ValueId x, const MeshAxis& axis) {
    return all_reduce(g, x, axis, rest == Factor::Rest::kMax ? Reduction::kMax : Reduction::kSum);
  });
}

void check_cut(const Whole& whole, const WayToCut& cut) {
  std::vector<Tensors> parts = run_parts(whole, cut);
  for (size_t i = 0; i < whole.outputs.size(); ++i)
    EXPECT_LE(difference(put_together(whole, cut, i, parts), whole.outputs[i]), tolerance_of(whole.types[i].dtype))
        << "output " << i;
}

// Into as few parts as can be, and where that leaves something to cut, within blocks.
std::vector<WayToCut> ways_to_cut(const ShardingRule& rule) {
  std::vector<WayToCut> ways;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const Factor& factor = rule.factors[f];
    if (factor.whole || factor.size < 2) continue;
    int64_t size = 2;
    while (factor.size % size != 0) ++size;
    int64_t rest = factor.size / size;
    if (!factor.mirrored) ways.push_back({int(f), 1, size});
    if (rest > 1 && !factor.placed) ways.push_back({int(f), rest, size});
    if (rest % 2 == 0 && (!factor.placed || factor.mirrored)) ways.push_back({int(f), 2, size, true});
    if (factor.mirrored && factor.size % 6 == 0) ways.push_back({int(f), 2, 3, true});
  }
  return ways;
}

TEST(ShardingRules, GiveEveryDimItsFactors) {
  for (const OpCase& c : all_cases()) {
    SCOPED_TRACE(std::string(c.op->name) + " " + c.name);
    Whole whole(c);
    auto check = [&](const std::vector<OperandFactors>& operands, const std::vector<HostTensor>& tensors) {
      ASSERT_EQ(operands.size(), tensors.size());
      for (size_t i = 0; i < operands.size(); ++i) {
        ASSERT_EQ(operands[i].size(), tensors[i].shape().size()) << "operand " << i;
        for (size_t d = 0; d < operands[i].size(); ++d) {
          int64_t size = 1;
          for (int f : operands[i][d]) size *= whole.rule.factors[size_t(f)].size;
          EXPECT_EQ(size, tensors[i].shape()[d]) << "operand " << i << ", dim " << d;
        }
      }
    };
    check(whole.rule.inputs, whole.inputs);
    check(whole.rule.outputs, whole.outputs);
  }
}

TEST(ShardingRules, AgreeWithTheReference) {
  for (const OpCase& c : all_cases()) {
    Whole whole(c);
    if (whole.rule.sums_inputs && c.inputs.size() > 1) continue;  // those left whole would count once a rank
    for (const WayToCut& cut : ways_to_cut(whole.rule)) {
      SCOPED_TRACE(fmt::format("{} {}, factor {} of {} in {}{} x {}", c.op->name, c.name, cut.factor,
                               whole.rule.factors[size_t(cut.factor)].size, cut.blocks, cut.mirrored ? " mirrored" : "",
                               cut.size));
      check_cut(whole, cut);
    }
  }
}

TEST(ShardingRules, SayWhatIsLinear) {
  for (const OpCase& c : all_cases()) {
    Whole whole(c);
    for (const InputSet& set : whole.rule.linear) {
      SCOPED_TRACE(c.name);
      Tensors first = whole.inputs, second = whole.inputs;
      for (int i : set) {
        second[size_t(i)] = random_tensor(first[size_t(i)].type, uint64_t(7 + i));
        for (int64_t e = 0; e < first[size_t(i)].size(); ++e) first[size_t(i)][e] -= second[size_t(i)][e];
      }
      Tensors a = interpret(whole.graph, first).results, b = interpret(whole.graph, second).results;
      for (size_t i = 0; i < a.size(); ++i) {
        HostTensor sum = a[i];
        for (int64_t e = 0; e < sum.size(); ++e) sum[e] += b[i][e];
        EXPECT_LE(difference(sum, whole.outputs[i]), tolerance_of(whole.types[i].dtype)) << "output " << i;
      }
    }
  }
}

TEST(ShardingRules, SayWhatIsASumOverInputs) {
  for (const OpCase& c : all_cases()) {
    Whole whole(c);
    if (!whole.rule.sums_inputs) continue;
    double sum = 0;
    for (size_t i = 0; i < whole.inputs.size(); ++i)
      sum += evaluate({c.name, c.op, {c.inputs[i]}, c.attrs}, {whole.inputs[i].data})[0][0];
    EXPECT_NEAR(sum, whole.outputs[0][0], 1e-9) << c.name;
  }
}

// All others can be cut, in one of their cases at least.
TEST(ShardingRules, AreThereForAllOpsThatTheStepIsWrittenIn) {
  const std::set<std::string_view> whole = {"all_gather", "all_reduce", "all_to_all", "part", "permute",
                                            "reduce_scatter", "context_attention", "context_attention_grad",
                                            // what shard appends
                                            "classifier", "column", "flat", "float8_scales", "float8_weights",
                                            "fused_matmul", "multi_adamw", "multi_add", "multi_cast", "packed_rotary",
                                            "packed_rotary_grad", "row",
                                            "row_block",      // made by passes after it
                                            "sample_token"};  // of generation
  std::set<std::string_view> cut;
  for (const OpCase& c : all_cases())
    if (!ways_to_cut(Whole(c).rule).empty()) cut.insert(c.op->name);
  for (const OpDef* op : all_ops()) EXPECT_NE(cut.count(op->name), whole.count(op->name)) << op->name;
}

TEST(ShardingRules, ReshapeSharesTheFactorsThatItCan) {
  auto rule_of = [](Shape from, Shape to) {
    OpCase c{"reshape", find_op("reshape"), {f32(std::move(from))}, {{"shape", std::move(to)}}};
    return Whole(c).rule;
  };
  ShardingRule rule = rule_of({6, 4}, {2, 12});
  EXPECT_EQ(rule.inputs[0], (OperandFactors{{0, 1}, {2}}));
  EXPECT_EQ(rule.outputs[0], (OperandFactors{{0}, {1, 2}}));
  EXPECT_EQ(ways_to_cut(rule_of({3, 5}, {5, 3})).size(), 0u);
  EXPECT_EQ(ways_to_cut(rule_of({7, 3, 5}, {7, 5, 3})).size(), 1u);
}

TEST(FindFactor, FindsTheOneThatACutFallsInto) {
  ShardingRule rule;
  DimFactors dim = {rule.whole(3), rule.apart(4), rule.apart(8)};
  EXPECT_EQ(find_factor(rule, dim, 3, 2), (FactorCut{1, 1}));
  EXPECT_EQ(find_factor(rule, dim, 6, 2), (FactorCut{1, 2}));
  EXPECT_EQ(find_factor(rule, dim, 12, 8), (FactorCut{2, 1}));
  EXPECT_EQ(find_factor(rule, dim, 3, 8), FactorCut{}) << "more parts than that factor has";
  EXPECT_EQ(find_factor(rule, dim, 1, 2), FactorCut{});
  EXPECT_EQ(place_of(rule, {dim}, 2).blocks, 12);
  EXPECT_EQ(place_of(rule, {{0}, {1}}, 2).dim, -1);
}

}  // namespace
}  // namespace tokamak::test
