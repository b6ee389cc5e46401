#include "ops/collective.h"

#include "ops/interpret.h"
#include "tests/ops/harness.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

#include <functional>

namespace tokamak::test {

static Attrs of_dims(const char* axis, const std::vector<int64_t>& dims, int64_t size) {
  return {{"axis", axis}, {"dims", dims}, {"size", size}};
}

// With one rank, which every backend can be; what more of them do is tested below.
std::vector<OpCase> collective_cases() {
  Attrs dims = of_dims("data", {1}, 1);
  dims.set("blocks", std::vector<int64_t>{2});
  Attrs two_dims{{"axis", "data"}, {"dim", 1}, {"from_blocks", 2}, {"from_dim", 0}, {"size", 1}};
  return {
      {"all_reduce_sum", &op::all_reduce, {f32({3, 4})}, {{"axis", "data"}, {"reduction", "sum"}, {"size", 1}}},
      {"all_reduce_two",
       &op::all_reduce,
       {f32({3}), f32({2, 2})},
       {{"axis", "data"}, {"reduction", "sum"}, {"size", 1}}},
      {"all_reduce_max", &op::all_reduce, {bf16({5})}, {{"axis", "data"}, {"reduction", "max"}, {"size", 1}}},
      {"reduce_scatter", &op::reduce_scatter, {f32({3, 4})}, dims},
      {"all_gather", &op::all_gather, {f32({3, 4})}, dims},
      {"all_gather_two", &op::all_gather, {bf16({3, 4}), bf16({5})}, of_dims("data", {1, 0}, 1)},
      {"all_to_all", &op::all_to_all, {f32({4, 4})}, two_dims},
      {"permute", &op::permute, {bf16({3, 4})}, {{"axis", "data"}, {"size", 1}, {"step", 0}}},
      {"part", &op::part, {f32({3, 12}), f32({}, 1, 1)}, {{"blocks", 2}, {"dim", 1}, {"size", 3}}},
      {"part_of_rows", &op::part, {i32({6}, 0, 9), f32({}, 2, 2)}, {{"dim", 0}, {"size", 3}}},
  };
}

namespace {

const MeshAxis kAxis{"tensor", 2};

// What each of two ranks gets from op(x), x being the numbers given for it, of this shape.
std::vector<std::vector<double>> run(Shape shape, const std::vector<std::vector<double>>& x,
                                     const std::function<ValueId(GraphBuilder&, ValueId)>& op) {
  Graph graph;
  GraphBuilder g(graph);
  ValueType type{DType::kF32, std::move(shape)};
  graph.add_result("y", op(g, g.input("x", type)));
  verify(graph);
  std::vector<std::vector<double>> y;
  for (Interpretation& rank : interpret_ranks(graph, {{kAxis}}, {{{type, x[0]}}, {{type, x[1]}}}))
    y.push_back(std::move(rank.results[0].data));
  return y;
}

using Ranks = std::vector<std::vector<double>>;

TEST(Collective, PermuteGivesWhatTheRankBeforeHas) {
  Ranks x = {{1, 5}, {2, -4}};
  EXPECT_EQ(run({2}, x, [](auto& g, ValueId v) { return permute(g, v, kAxis, 1); }), (Ranks{{2, -4}, {1, 5}}));
  EXPECT_EQ(run({2}, x, [](auto& g, ValueId v) { return permute(g, v, kAxis, 0); }), x);
  expect_refused({"", &op::permute, {f32({4})}, {{"axis", "data"}, {"size", 2}, {"step", 2}}}, "a step below 2");
}

TEST(Collective, AllReduceGivesAllTheSumOrTheMaximum) {
  Ranks x = {{1, 5, -3}, {2, -4, -1}};
  EXPECT_EQ(run({3}, x, [](auto& g, ValueId v) { return all_reduce(g, v, kAxis, Reduction::kSum); }),
            (Ranks{{3, 1, -4}, {3, 1, -4}}));
  EXPECT_EQ(run({3}, x, [](auto& g, ValueId v) { return all_reduce(g, v, kAxis, Reduction::kMax); }),
            (Ranks{{2, 5, -1}, {2, 5, -1}}));
}

TEST(Collective, ReduceScatterGivesEachItsPartOfTheSum) {
  Ranks x = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  auto along = [&](CutDim to) { return [=](auto& g, ValueId v) { return reduce_scatter(g, v, kAxis, to); }; };
  EXPECT_EQ(run({4}, x, along({0})), (Ranks{{11, 22}, {33, 44}}));
  EXPECT_EQ(run({4}, x, along({0, 2})), (Ranks{{11, 33}, {22, 44}})) << "of two blocks, each has one of each";
  EXPECT_EQ(run({2, 2}, x, along({1})), (Ranks{{11, 33}, {22, 44}}));
}

// In f32 (2^24 + 1) + 1 is 2^24, and 2^24 + (1 + 1) is 2^24 + 2.
TEST(Collective, OrderedSumsAreThoseOfATreeRounded) {
  const MeshAxis four{"data", 4};
  ValueType type{DType::kF32, {4}};
  Graph graph;
  GraphBuilder g(graph);
  ValueId x = g.input("x", type);
  graph.add_result("all", ordered_all_reduce(g, x, four));
  graph.add_result("part", ordered_reduce_scatter(g, x, four, {0}));
  verify(graph);
  double big = 0x1p24;
  std::vector<Interpretation> ranks = interpret_ranks(
      graph, {{four}},
      {{{type, {big, 1, 1, 8}}}, {{type, {1, big, 1, 8}}}, {{type, {1, 1, big, 8}}}, {{type, {1, 1, 1, 8}}}});
  for (size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(ranks[r].results[0].data, (std::vector<double>{big + 2, big + 2, big + 2, 32}));
    EXPECT_EQ(ranks[r].results[1].data, (std::vector<double>{ranks[r].results[0][int64_t(r)]}));
  }
}

TEST(Collective, OrderedSumsAreOfPowersOfTwo) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {6}});
  expect_user_error([&] { ordered_all_reduce(g, x, {"data", 3}); }, {"expected a power of two of ranks", "got 3"});
  Attrs largest{{"axis", "data"}, {"ordered", true}, {"reduction", "max"}, {"size", 2}};
  expect_user_error([&] { g.add1(op::all_reduce, {x}, largest); }, {"expected sums where they are ordered"});
}

TEST(Collective, AllGatherPutsThePartsTogether) {
  Ranks x = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  auto along = [&](CutDim from) { return [=](auto& g, ValueId v) { return all_gather(g, v, kAxis, from); }; };
  EXPECT_EQ(run({4}, x, along({0}))[1], (std::vector<double>{1, 2, 3, 4, 10, 20, 30, 40}));
  EXPECT_EQ(run({4}, x, along({0, 2}))[0], (std::vector<double>{1, 2, 10, 20, 3, 4, 30, 40}));
  EXPECT_EQ(run({2, 2}, x, along({1}))[0], (std::vector<double>{1, 2, 10, 20, 3, 4, 30, 40}));
}

TEST(Collective, AllToAllCutsAnotherDim) {
  Ranks x = {{1, 2, 3, 4}, {10, 20, 30, 40}};  // rows 0, 1 and rows 2, 3 of (4, 2)
  EXPECT_EQ(run({2, 2}, x, [](auto& g, ValueId v) { return all_to_all(g, v, kAxis, {0}, {1}); }),
            (Ranks{{1, 3, 10, 30}, {2, 4, 20, 40}}));
}

// The outputs of an op of two tensors, on two ranks: of `y0` and `y1` each.
Ranks run_two(const OpDef& op, Attrs attrs, const ValueTypes& types, const Ranks& x0, const Ranks& x1) {
  Graph graph;
  GraphBuilder g(graph);
  ValueIds y = g.add(op, {g.input("x0", types[0]), g.input("x1", types[1])}, std::move(attrs));
  graph.add_result("y0", y[0]);
  graph.add_result("y1", y[1]);
  verify(graph);
  Ranks out;
  for (const Interpretation& rank : interpret_ranks(
           graph, {{kAxis}}, {{{types[0], x0[0]}, {types[1], x1[0]}}, {{types[0], x0[1]}, {types[1], x1[1]}}}))
    for (const HostTensor& result : rank.results) out.push_back(result.data);
  return out;
}

TEST(Collective, DoesTheSameWithSeveralTensors) {
  ValueType row{DType::kF32, {2}}, matrix{DType::kF32, {2, 2}};
  Ranks x0 = {{1, 2}, {10, 20}}, x1 = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  EXPECT_EQ(run_two(op::all_reduce, {{"axis", "tensor"}, {"reduction", "sum"}, {"size", 2}}, {row, matrix}, x0, x1),
            (Ranks{{11, 22}, {11, 22, 33, 44}, {11, 22}, {11, 22, 33, 44}}));
  Attrs attrs = of_dims("tensor", {0, 1}, 2);
  EXPECT_EQ(run_two(op::reduce_scatter, attrs, {row, matrix}, x0, x1), (Ranks{{11}, {11, 33}, {22}, {22, 44}}));
  set_cut_dims(attrs, {{0, 2}, {1}});
  EXPECT_EQ(run_two(op::all_gather, attrs, {row, matrix}, x0, x1)[0], (std::vector<double>{1, 10, 2, 20}))
      << "of two blocks";
  EXPECT_EQ(run_two(op::all_gather, attrs, {row, matrix}, x0, x1)[1],
            (std::vector<double>{1, 2, 10, 20, 3, 4, 30, 40}));
}

TEST(Collective, SendsOfSeveralTensorsAsMuchAsOfEach) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {8, 100}}), y = g.input("y", {DType::kF32, {4}});
  g.add(op::all_reduce, {x, y}, {{"axis", "data"}, {"reduction", "sum"}, {"size", 4}});
  g.add(op::reduce_scatter, {x, y}, of_dims("data", {0, 0}, 4));
  g.add(op::all_gather, {x, y}, of_dims("data", {0, 0}, 4));
  std::vector<double> sent;
  for (const Node& node : graph.nodes()) sent.push_back(node_cost(graph, node).link_bytes);
  EXPECT_EQ(sent, (std::vector<double>{4824, 2412, 9648}));
}

TEST(Collective, CutDimsAreWhatWasSet) {
  Attrs attrs;
  set_cut_dims(attrs, {{1}, {0}});
  EXPECT_EQ(attrs, (Attrs{{"dims", std::vector<int64_t>{1, 0}}}));
  set_cut_dims(attrs, {{1, 3}, {0}});
  EXPECT_EQ(cut_dims(attrs)[0].blocks, 3);
  EXPECT_EQ(cut_dims(attrs)[1].blocks, 1);
  set_cut_dims(attrs, {{1}});
  ASSERT_EQ(cut_dims(attrs).size(), 1u);
  EXPECT_EQ(cut_dims(attrs)[0].blocks, 1) << "and nothing of what was set before";
}

TEST(Collective, TellsWhatARankSends) {
  Graph graph;
  GraphBuilder g(graph);
  MeshAxis axis{"data", 4};
  ValueId x = g.input("x", {DType::kF32, {8, 100}});
  all_reduce(g, x, axis, Reduction::kSum);
  reduce_scatter(g, x, axis, {0});
  all_gather(g, x, axis, {0});
  all_to_all(g, x, axis, {0}, {1});
  std::vector<double> sent;
  for (const Node& node : graph.nodes()) {
    sent.push_back(node_cost(graph, node).link_bytes);
    EXPECT_EQ(node_cost(graph, node).flops, 0) << node.op->name;
  }
  EXPECT_EQ(sent, (std::vector<double>{4800, 2400, 9600, 2400}));  // of x: 1.5, 0.75, 3 and 0.75 times its 3200 bytes
}

TEST(Collective, ActsOnItsAxis) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {4}});
  all_gather(g, all_reduce(g, x, {"data", 2}, Reduction::kSum), {"tensor", 2}, {0});
  auto effects = effects_of(graph);
  EXPECT_EQ(effects["data"], (std::vector<const OpDef*>{&op::all_reduce}));
  EXPECT_EQ(effects["tensor"], (std::vector<const OpDef*>{&op::all_gather}));
}

TEST(Collective, RefusesWhatCannotBeCut) {
  OpCase scatter{"", &op::reduce_scatter, {f32({6, 4})}, of_dims("data", {0}, 4)};
  expect_refused(scatter, "[reduce_scatter] expected a dim of 1 blocks for 4 ranks, got dim 0 of f32[6,4]");
  scatter.attrs = of_dims("data", {2}, 4);
  expect_refused(scatter, "got dim 2");
  set_cut_dims(scatter.attrs, {{1, 3}});
  expect_refused(scatter, "a dim of 3 blocks");
  scatter.attrs = of_dims("data", {1, 1}, 4);
  expect_refused(scatter, "dims for each of 1 tensors, got 2");
  scatter.attrs = of_dims("data", {1}, 4);
  scatter.attrs.set("blocks", std::vector<int64_t>{1, 1});
  expect_refused(scatter, "blocks for each of 1 tensors, got 2");
  expect_refused({"", &op::all_gather, {f32({4}), f32({6, 4})}, of_dims("data", {0, 4}, 2)}, "dim 4 of f32[6,4]");
  expect_refused({"", &op::all_gather, {f32({4}), bf16({4})}, of_dims("data", {0, 0}, 2)}, "tensors of one type");
  expect_refused({"", &op::all_reduce, {f32({})}, {{"axis", ""}, {"reduction", "sum"}, {"size", 2}}}, "an axis of one");
  expect_refused({"", &op::all_reduce, {f32({})}, {{"axis", "a"}, {"reduction", "mean"}, {"size", 2}}}, "sum or max");
  expect_refused({"", &op::all_to_all, {f32({4, 4})}, {{"axis", "a"}, {"dim", 0}, {"from_dim", 0}, {"size", 2}}},
                 "two dims");
  expect_refused({"", &op::part, {f32({4}), f32({2})}, {{"dim", 0}, {"size", 2}}}, "one number");
}

TEST(InterpretRanks, RefusesAnotherMesh) {
  Graph graph;
  GraphBuilder g(graph);
  ValueType type{DType::kF32, {2}};
  graph.add_result("y", all_reduce(g, g.input("x", type), {"data", 2}, Reduction::kSum));
  std::vector<std::vector<HostTensor>> arguments(4, {HostTensor(type)});
  expect_user_error(
      [&] {
        interpret_ranks(graph, {{{"data", 4}}}, arguments);
      },
      {"expected axis data of 2 ranks, got 4"});
  expect_user_error(
      [&] {
        interpret_ranks(graph, {{{"data", 2}}}, arguments);
      },
      {"expected arguments of 2 ranks, got those of 4"});
  expect_user_error([&] { interpret(graph, arguments[0]); }, {"[all_reduce] expected 2 ranks"});
}

TEST(InterpretRanks, RunsEveryGroupOfRanksByItself) {
  Mesh mesh{{{"data", 2}, {"tensor", 3}}};
  Graph graph;
  GraphBuilder g(graph);
  ValueType type{DType::kF32, {}};
  ValueId x = g.input("x", type);
  graph.add_result("rows", all_reduce(g, x, mesh.axes[1], Reduction::kSum));
  graph.add_result("columns", all_reduce(g, x, mesh.axes[0], Reduction::kSum));
  std::vector<std::vector<HostTensor>> arguments;
  for (double rank = 0; rank < 6; ++rank) arguments.push_back({HostTensor(type, {rank})});
  std::vector<Interpretation> ranks = interpret_ranks(graph, mesh, arguments);
  for (size_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(ranks[rank].results[0][0], rank < 3 ? 3 : 12);
    EXPECT_EQ(ranks[rank].results[1][0], 3 + 2 * double(rank % 3));
  }
}

}  // namespace
}  // namespace tokamak::test
