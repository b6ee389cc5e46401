#include "passes/pad_shards.h"

#include "config/mesh_config.h"
#include "passes/pad_vocab.h"
#include "passes/seed_cuts.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr const char* kText = R"(graph g {
  input x = %0 : f32[6,7]
  param w = %1 {role="matrix"} : f32[7,4]
  param gain = %2 : f32[6]
  %3 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[6,4]
  result y = %3
})";

PassContext context_of(const MeshConfig& mesh) {
  PassContext context;
  context.mesh = step_mesh(mesh);
  context.zero = mesh.zero;
  context.gathers_once = mesh.zero == 1 || mesh.zero == 2;
  context.slots = std::max<int64_t>(mesh.slots, 1);
  return context;
}

TEST(PadShards, AddsRowsWhereNoDimIsDivided) {
  Graph graph = test::parse(kText);
  EXPECT_TRUE(pad_shards(graph, context_of({.data = 3, .zero = 1})));
  EXPECT_EQ(print(graph), print(test::parse(R"(graph g {
    input x = %0 : f32[6,7]
    param w = %1 {global=[7,4], padding="0x1-", role="matrix"} : f32[9,4]
    param gain = %2 : f32[6]
    %3 = first_rows(%1) {rows=7} : f32[7,4]
    %4 = matmul(%0, %3) {trans_a=false, trans_b=false} : f32[6,4]
    result y = %4
  })")));
}

TEST(PadShards, LeavesWhatIsDividedOrCannotBe) {
  auto leaves = [](PassContext context) {
    Graph graph = test::parse(kText);
    return !pad_shards(graph, context);
  };
  EXPECT_TRUE(leaves(context_of({.data = 3}))) << "without ZeRO nothing is cut";
  EXPECT_TRUE(leaves(context_of({.data = 2, .zero = 3}))) << "2 ranks divide 4 columns";
  EXPECT_TRUE(leaves(context_of({.data = 3, .zero = 3, .slots = 4})));
  EXPECT_FALSE(leaves(context_of({.data = 3, .zero = 3})));
  PassContext later = context_of({.data = 3, .zero = 2});
  later.gathers_once = false;
  EXPECT_TRUE(leaves(later)) << "parameters are whole, and samples of text are taken from them as they are";
  Graph row = test::parse(R"(graph g {
    param proj = %0 {role="row"} : f32[8,7]
    result y = %0
  })");
  PassContext factored = context_of({.data = 3, .tensor = 2, .zero = 3});
  factored.rows_in_parts = false;
  EXPECT_FALSE(pad_shards(row, factored)) << "tensor cuts the rows";
  PassContext whole = context_of({.data = 3, .zero = 3});
  whole.updates_whole = [](const Argument&) { return true; };
  EXPECT_TRUE(leaves(whole));
}

TEST(PadShards, EachReaderTakesTheRowsItself) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[7,7]
    param w = %1 {global=[7,4], padding="0x1-", role="matrix"} : f32[9,4]
    %2 = first_rows(%1) {rows=7} : f32[7,4]
    %3 = matmul(%0, %2) {trans_a=false, trans_b=false} : f32[7,4]
    %4 = mul(%3, %2) #backward : f32[7,4]
    result y = %4
  })");
  Graph apart = with_rows_where_read(graph);
  verify(apart);
  std::vector<Phase> phases;
  for (const Node& node : apart.nodes())
    if (node.op->name == "first_rows" && !find_users(apart)[size_t(node.outputs[0])].empty())
      phases.push_back(node.phase);
  EXPECT_EQ(phases, (std::vector<Phase>{Phase::kForward, Phase::kBackward}));
}

// As without rows of zeros: between its blocks no tensor rank has all of what they add up, and products add onto sums.
TEST(PadShards, RowsThatAreAddedChangeNoCollective) {
  ModelConfig model{.layers = 2, .heads = 2, .width = 22, .context = 4, .vocab = 29};
  PassContext context = context_of({.data = 3, .tensor = 2, .zero = 1});
  context.sequence = true;
  Graph micro_batch = forward_graph("micro_batch", model, 3, model.context, false);
  pad_vocab(micro_batch, context);
  ASSERT_TRUE(pad_shards(micro_batch, context));
  GraphBuilder g(micro_batch);
  append_accumulation(g, test::append_gradients(g, micro_batch.find_result("loss")));
  shard(micro_batch, context);
  for (const Node& node : micro_batch.nodes()) {
    bool is_activation = node.op->name == "all_reduce" && micro_batch.shape(node.outputs[0]).size() == 3;
    EXPECT_FALSE(is_activation) << "of " << to_string(micro_batch.shape(node.outputs[0]));
  }
  EXPECT_EQ(test::count_ops(micro_batch, "pad"), 0);
}

// What is behind the rows of a parameter, or of each part of them, and of a state that belongs to it.
void clear_rows_added(const Graph& step, const Argument& argument, std::vector<double>& data) {
  int64_t parts = 1;
  const std::string& parameter = argument.spec.of.empty() ? argument.name : argument.spec.of;
  for (const Node& node : step.nodes())
    if (node.op->name == "first_rows" && node.inputs[0] == step.find_argument(parameter))
      parts = node.attrs.get_int("parts", 1);
  int64_t stored = int64_t(data.size()) / parts, own = num_elements(argument.spec.global) / parts;
  for (int64_t part = 0; part < parts; ++part)
    std::fill(data.begin() + part * stored + own, data.begin() + (part + 1) * stored, 0.0);
}

// Shapes that few numbers divide: with 3, 5, 6, 7 and 12 ranks every share of every tensor is the same, and the step is
// that of one rank.
TEST(PadShards, AStepIsTheSameOnAnyNumberOfRanks) {
  ModelConfig model{.layers = 1, .heads = 2, .width = 22, .context = 4, .vocab = 29};
  for (auto [data, tensor] : {std::pair(3, 1), {5, 1}, {6, 1}, {7, 1}, {12, 1}, {3, 2}, {5, 2}})
    for (int64_t zero : {1, 2, 3}) {
      PassContext context = context_of({.data = data, .tensor = tensor, .zero = zero});
      Graph step = forward_graph("step", model, data, model.context, false);
      pad_vocab(step, context);
      pad_shards(step, context);
      GraphBuilder g(step);
      append_update(g, test::append_gradients(g, step.find_result("loss")), test::kAdamw);
      std::vector<HostTensor> arguments = test::step_arguments(step);
      for (size_t i = 0; i < arguments.size(); ++i) {
        const Argument& argument = step.arguments()[i];
        if (!argument.spec.global.empty() && argument.kind != Argument::Kind::kInput)
          clear_rows_added(step, argument, arguments[i].data);
      }
      Graph share = step;
      shard(share, context);
      EXPECT_EQ(test::find_sharding_fault(step, share, context.mesh, arguments, 1e-9), "") << data << " " << zero;
      for (const Argument& argument : share.arguments()) {
        bool is_matrix_state = argument.spec.role == Role::kMoment && share.shape(argument.value).size() == 2;
        EXPECT_TRUE(!is_matrix_state || !argument.spec.cuts.empty()) << argument.name << " on " << data;
      }
    }
}

}  // namespace
}  // namespace tokamak
