#include "passes/shard.h"

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "config/mesh_config.h"
#include "config/model_config.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "graph/rewriter.h"
#include "model/model.h"
#include "ops/attention.h"
#include "ops/collective.h"
#include "ops/context_attention.h"
#include "ops/dropout.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "passes/apply_recompute.h"
#include "passes/live_bytes.h"
#include "passes/seed_cuts.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::canonical;
using test::count_ops;
using test::step_of;

const Mesh kTwo{{{"data", 2}}};

ModelConfig tiny() {
  ModelConfig model;
  model.layers = 2;
  model.heads = 4;
  model.width = 16;
  model.context = 8;
  model.vocab = 24;
  return model;
}

Mesh mesh_of(int64_t data, int64_t context, int64_t tensor) {
  return step_mesh({.data = data, .context = context, .tensor = tensor});
}

Graph sharded(const Graph& graph, const Mesh& mesh, int64_t zero, bool sequence = false, bool gathers_once = false) {
  PassContext context;
  context.mesh = mesh;
  context.zero = zero;
  context.sequence = sequence;
  context.gathers_once = gathers_once;
  Graph share = graph;
  EXPECT_TRUE(shard(share, context));
  verify(share);
  return share;
}

void expect_same_step(const Graph& step, const Mesh& mesh, int64_t zero) {
  for (bool sequence : {false, true})
    for (bool gathers_once : {false, true}) {
      if ((sequence && mesh.size(kTensorAxis) == 1) || (gathers_once && zero != 1 && zero != 2)) continue;
      Graph share = sharded(step, mesh, zero, sequence, gathers_once);
      std::string fault = test::find_sharding_fault(step, share, mesh, test::step_arguments(step), 1e-9);
      EXPECT_EQ(fault, "") << "zero " << zero << ", sequence " << sequence << ", gathers once " << gathers_once;
    }
}

TEST(Shard, CutsTheBatchAndAddsUpTheLoss) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[6,8]
    param w = %1 : f32[8,4]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[6,4]
    %3 = reduce_sum(%2) {dims=[0,1], keep=false} : f32[]
    result loss = %3
  })");
  EXPECT_EQ(print(shard_graph(graph, kTwo, {{0, {{"data", 2, 0}}}})), canonical(R"(graph g {
    input x = %0 {cuts="data:2@0", global=[6,8]} : f32[3,8]
    param w = %1 : f32[8,4]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[3,4]
    %3 = reduce_sum(%2) {dims=[0,1], keep=false} : f32[]
    %4 = all_reduce(%3) {axis="data", reduction="sum", size=2} : f32[]
    result loss = %4
  })"));
}

TEST(Shard, ReducesAGradientToWhereItIsUsed) {
  constexpr const char* kStep = R"(graph g {
    input x = %0 : f32[6,8]
    input dy = %1 : f32[6,4]
    state m = %2 : f32[8,4]
    %3 = matmul(%0, %1) {trans_a=true, trans_b=false} #backward : f32[8,4]
    %4 = add(%2, %3) #update : f32[8,4]
    update %2 = %4
  })";
  Graph graph = test::parse(kStep);
  std::vector<Cut> rows = {{"data", 2, 0}};
  Graph whole = shard_graph(graph, kTwo, {{0, rows}, {1, rows}});
  EXPECT_EQ(count_ops(whole, "all_reduce"), 1);
  EXPECT_EQ(whole.nodes()[1].op, &op::all_reduce);
  EXPECT_EQ(whole.nodes()[1].phase, Phase::kBackward) << "where it appears";
  Graph cut = shard_graph(graph, kTwo, {{0, rows}, {1, rows}, {2, rows}});
  EXPECT_EQ(print(cut), canonical(R"(graph g {
    input x = %0 {cuts="data:2@0", global=[6,8]} : f32[3,8]
    input dy = %1 {cuts="data:2@0", global=[6,4]} : f32[3,4]
    state m = %2 {cuts="data:2@0", global=[8,4]} : f32[4,4]
    %3 = matmul(%0, %1) {trans_a=true, trans_b=false} #backward : f32[8,4]
    %4 = reduce_scatter(%3) {axis="data", dims=[0], size=2} #backward : f32[4,4]
    %5 = add(%2, %4) #update : f32[4,4]
    update %2 = %5
  })"));
}

// A sum that the graph asks for: of the gradients of the ranks' own inputs.
constexpr const char* kSumOfOwn = R"(graph g {
    input x = %0 : f32[6,8]
    input dy = %1 : f32[6,4]
    state m = %2 : f32[8,4]
    %3 = matmul(%0, %1) {trans_a=true, trans_b=false} #backward : f32[8,4]
    %4 = reduce_sum(%1) {dims=[0,1], keep=false} #backward : f32[]
    %5 = all_reduce(%3) {axis="data", ordered=true, reduction="sum", size=2} #backward : f32[8,4]
    %6 = add(%2, %5) #update : f32[8,4]
    update %2 = %6
    result loss = %4
  })";

TEST(Shard, PlacesASumOfOwnTermsWhereItsTermsAppear) {
  Graph whole = shard_graph(test::parse(kSumOfOwn), kTwo, {}, {}, true);
  EXPECT_EQ(print(whole), canonical(R"(graph g {
    input x = %0 : f32[6,8]
    input dy = %1 : f32[6,4]
    state m = %2 : f32[8,4]
    %3 = matmul(%0, %1) {trans_a=true, trans_b=false} #backward : f32[8,4]
    %4 = all_reduce(%3) {axis="data", ordered=true, reduction="sum", size=2} #backward : f32[8,4]
    %5 = reduce_sum(%1) {dims=[0,1], keep=false} #backward : f32[]
    %6 = add(%2, %4) #update : f32[8,4]
    update %2 = %6
    result loss = %5
  })"));
  Graph cut = shard_graph(test::parse(kSumOfOwn), kTwo, {{2, {{"data", 2, 0}}}}, {}, true);
  EXPECT_EQ(count_ops(cut, "all_reduce"), 0);
  ASSERT_EQ(cut.nodes()[1].op, &op::reduce_scatter);
  EXPECT_TRUE(is_ordered(cut.nodes()[1].attrs));
}

// So that a slot's gradient is complete before it is added to another's.
TEST(Shard, AddsInOrderAfterAllOtherSums) {
  Mesh mesh{{{"data", 2}, {"context", 2}}};
  ArgumentCuts cuts = {{0, {{"context", 2, 0}}}, {1, {{"context", 2, 0}}}};
  for (bool is_cut : {false, true}) {
    if (is_cut) cuts[2] = {{"data", 2, 0}, {"context", 2, 0, 2}};
    std::vector<std::string> axes;
    Graph share = shard_graph(test::parse(kSumOfOwn), mesh, cuts, {}, true);
    for (const Node& node : share.nodes())
      if (node.op->together && num_elements(share.shape(node.outputs[0])) > 1)
        axes.push_back(node.attrs.get_string("axis"));
    EXPECT_EQ(axes, (std::vector<std::string>{"context", "data"}));
  }
}

TEST(Shard, GathersWhatIsAddedInOrder) {
  Graph graph = test::parse(R"(graph g {
    state m = %0 : f32[8,4]
    %1 = sum_squares(%0) {pieces=4} #update : f32[1,4]
    %2 = reduce_sum(%1) {dims=[0,1], keep=false} #update : f32[]
    result norm = %2
  })");
  ArgumentCuts cuts = {{0, {{"data", 2, 0}}}};
  Graph ordered = shard_graph(graph, kTwo, cuts, {}, true);
  EXPECT_EQ(count_ops(ordered, "all_gather"), 1);
  EXPECT_EQ(count_ops(ordered, "all_reduce"), 0);
  EXPECT_EQ(ordered.shape(ordered.nodes()[0].outputs[0]), (Shape{1, 2}));
  EXPECT_EQ(count_ops(shard_graph(graph, kTwo, cuts), "all_reduce"), 1);
}

// A sum of gradients is begun anew with zeros, which may be terms on all ranks; of any other number one rank has it.
TEST(Shard, ConstantsThatAreTermsAddUpToThemselves) {
  for (double value : {0.0, 3.0}) {
    Graph graph("g");
    GraphBuilder g(graph);
    ValueId sum = g.state_of(g.parameter("w", {DType::kF32, {4}}), "grad", Role::kGradientSum);
    g.set_phase(Phase::kUpdate);
    graph.add_update(sum, constant(g, value, {4}));
    Graph share = shard_graph(graph, kTwo, {{sum, {{.axis = "data", .size = 2, .term = true}}}});
    std::vector<HostTensor> arguments(2, HostTensor({DType::kF32, {4}}));
    EXPECT_EQ(test::find_sharding_fault(graph, share, kTwo, arguments, 0), "") << value;
    EXPECT_EQ(count_ops(share, "select"), value == 0 ? 0 : 1);
  }
}

TEST(Shard, RefusesCutsThatCannotBe) {
  Graph graph = test::parse("graph g { input x = %0 : f32[6,8] result y = %0 }");
  expect_user_error(
      [&] {
        shard_graph(graph, kTwo, {{0, {{"data", 2, 0, 2}}}});
      },
      {"[shard] expected cuts that divide 'x' of [6,8], got \"data:2@0x2\""});
}

TEST(ShardedStep, IsTheSameStepOnAnyMeshOfUpTo8Ranks) {
  Graph step = step_of(tiny());
  for (int64_t data : {1, 2, 4, 8})
    for (int64_t context : {1, 2, 4})
      for (int64_t tensor : {1, 2, 4}) {
        int64_t ranks = data * context * tensor;
        if (ranks == 1 || ranks > 8) continue;
        SCOPED_TRACE(fmt::format("data {} context {} tensor {}", data, context, tensor));
        for (int64_t zero = 0; zero <= (data * context > 1 ? 3 : 0); ++zero)
          expect_same_step(step, mesh_of(data, context, tensor), zero);
      }
}

TEST(ShardedStep, IsTheSameInEveryFormOfTheModel) {
  ModelConfig model = tiny();
  model.tie_weights = model.bias = false;
  expect_same_step(step_of(model), mesh_of(2, 1, 2), 3);
  expect_same_step(step_of(tiny(), 8, true), mesh_of(2, 2, 2), 2);
}

// Meshes of 2, 4 and 8 ranks, each with something to divide by ZeRO where it has ranks for that.
const std::vector<std::array<int64_t, 3>> kMeshes{{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {4, 1, 1}, {2, 2, 1}, {2, 1, 2},
                                                  {1, 2, 2}, {8, 1, 1}, {2, 2, 2}, {1, 2, 4}, {4, 1, 2}};

void expect_same_step_on_all(const Graph& step) {
  for (int64_t zero = 0; auto [data, context, tensor] : kMeshes) {
    SCOPED_TRACE(fmt::format("data {} context {} tensor {}", data, context, tensor));
    expect_same_step(step, mesh_of(data, context, tensor), data * context > 1 ? zero++ % 4 : 0);
  }
}

TEST(ShardedStep, DropsTheSameElements) {
  ModelConfig model = tiny();
  model.dropout = 0.2;
  expect_same_step_on_all(step_of(model));
}

TEST(ShardedStep, DrawsTheNumbersOfItsShareAlone) {
  ModelConfig model = tiny();
  model.dropout = 0.2;
  Graph share = sharded(step_of(model), mesh_of(2, 1, 2), 0);
  int64_t largest = 8 / 2 * model.context * model.width, attentions = 0;
  for (const Node& node : share.nodes()) {
    if (node.op == &op::dropout) {
      EXPECT_EQ(num_elements(share.shape(node.inputs[0])), largest) << print(share, node);
    }
    if (node.op == &op::attention || node.op == &op::attention_grad) {
      EXPECT_EQ(share.shape(node.inputs[0]), (Shape{4, model.context, 3 * model.width / 2})) << print(share, node);
      ++attentions;
    }
    EXPECT_NE(node.op, &op::random_uniform) << "drawn whole, and cut";
  }
  EXPECT_EQ(attentions, 2 * model.layers);
  EXPECT_EQ(count_ops(share, "concat"), 2) << "one rng for the batch, and one for heads as well";
}

TEST(ShardedStep, AddsGradientsOfMicroBatches) {
  Graph micro_batch = forward_graph("micro_batch", tiny(), 8, tiny().context, false);
  GraphBuilder g(micro_batch);
  append_accumulation(g, test::append_gradients(g, micro_batch.find_result("loss")));
  expect_same_step_on_all(micro_batch);
  expect_same_step_on_all(accumulated_update_graph(micro_batch, test::kAdamw, 2));
}

TEST(ShardedStep, AddsThemOverDataOnceForAllMicroBatches) {
  Graph micro_batch = forward_graph("micro_batch", tiny(), 8, tiny().context, false);
  GraphBuilder g(micro_batch);
  append_accumulation(g, test::append_gradients(g, micro_batch.find_result("loss")));
  Graph update = accumulated_update_graph(micro_batch, test::kAdamw, 2);
  for (auto [data, context, tensor] : kMeshes)
    for (int64_t zero : {0, 1}) {
      if (zero == 1 && data * context == 1) continue;
      SCOPED_TRACE(fmt::format("data {} context {} tensor {} zero {}", data, context, tensor, zero));
      Mesh mesh = mesh_of(data, context, tensor);
      for (const Graph* whole : {&micro_batch, &update}) {
        Graph share = sharded(*whole, mesh, zero, true);
        EXPECT_EQ(test::find_sharding_fault(*whole, share, mesh, test::step_arguments(*whole), 1e-9), "")
            << whole->name();
        if (whole == &update || data == 1) continue;
        for (const Node& node : share.nodes())
          if (node.op->effects && node.attrs.get_string("axis") == "data") {
            EXPECT_EQ(share.shape(node.outputs[0]), Shape{}) << "more than the loss: " << print(share, node);
          }
      }
    }
}

TEST(ShardedStep, ScattersATablesGradientOnlyWhereTheStreamIsLarger) {
  ModelConfig model = tiny();  // a table of 24 x 16, and 8 sequences of 8 x 16
  model.tie_weights = false;
  for (int64_t data : {1, 8}) {
    Graph share = sharded(step_of(model), mesh_of(data, 1, 2), 0, true);
    bool scatters = false;
    for (const Node& node : share.nodes())
      scatters |= node.op == &op::reduce_scatter && share.shape(node.outputs[0]) == Shape{12, 16};
    EXPECT_EQ(scatters, data == 1);
  }
}

TEST(ShardedStep, DividesTermsBeforeTheyAreAddedUp) {
  Graph model = forward_graph("model", tiny(), 8, tiny().context, false);
  Graph share = sharded(accumulated_update_graph(model, test::kAdamw, 2), mesh_of(2, 2, 1), 1);
  int64_t scattered = 0;
  for (const Node& node : share.nodes())
    if (node.op == &op::reduce_scatter && node.attrs.get_string("axis") == "data")
      for (ValueId input : node.inputs) scattered = std::max(scattered, num_elements(share.shape(input)));
  EXPECT_EQ(scattered, 16 * 64 / 2) << "half of the largest matrix, by context";
}

TEST(ShardedStep, ScalesTheLoss) { expect_same_step_on_all(step_of(tiny(), 8, false, LossScaling{})); }

TEST(ShardedStep, HasAClassifierOfItsOwn) {
  ModelConfig model = tiny();
  model.tie_weights = false;
  expect_same_step_on_all(step_of(model));
}

TEST(ShardedStep, ComputesActivationsAgain) {
  ModelConfig model = tiny();
  model.dropout = 0.2;
  Graph step = step_of(model);
  for (auto [data, context, tensor] : kMeshes) {
    SCOPED_TRACE(fmt::format("data {} context {} tensor {}", data, context, tensor));
    Mesh mesh = mesh_of(data, context, tensor);
    Graph share = sharded(step, mesh, data * context > 1 ? 3 : 0, true);
    change_nodes(share, [](Node& node) { return node.recompute = node.phase == Phase::kForward; });
    EXPECT_TRUE(apply_recompute(share, {}));
    EXPECT_EQ(test::find_sharding_fault(step, share, mesh, test::step_arguments(step), 1e-9), "");
  }
}

bool is_attention(const Node& node) {
  return node.op == &op::attention || node.op == &op::attention_grad || node.op == &op::context_attention ||
         node.op == &op::context_attention_grad;
}

double attention_flops(const Graph& graph) {
  double flops = 0;
  for (const Node& node : graph.nodes())
    if (is_attention(node)) flops += node_cost(graph, node).flops;
  return flops;
}

// Of attention a rank has its share of what is seen, with dropout and documents, too. It gathers keys and values alone:
// once, and in the backward pass again, without a transpose.
void expect_context_divided(const ModelConfig& model, bool documents, const Mesh& mesh) {
  int64_t contexts = mesh.size(kContextAxis), batch = 64 / mesh.size(kDataAxis), T = model.context / contexts;
  int64_t width = model.width / mesh.size(kTensorAxis), gathers = 0, attentions = 0;
  Graph step = step_of(model, 64, documents), share = sharded(step, mesh, 0);
  for (const Node& node : share.nodes()) {
    if (is_attention(node)) {
      EXPECT_EQ(share.shape(node.inputs[0]), (Shape{batch, T, 3 * width})) << print(share, node);
      EXPECT_EQ(share.shape(node.inputs[1]), (Shape{contexts * batch, T, 2 * width})) << print(share, node);
      ++attentions;
    }
    bool along = node.op == &op::all_gather && node.attrs.get_string("axis") == kContextAxis;
    if (!along || share.shape(node.outputs[0]).size() != 3) continue;
    EXPECT_EQ(share.shape(node.outputs[0]), (Shape{contexts * batch, T, 2 * width})) << print(share, node);
    ++gathers;
  }
  EXPECT_EQ(gathers, 2 * model.layers);
  EXPECT_EQ(attentions, 2 * model.layers);
  EXPECT_EQ(attention_flops(share), attention_flops(step) / double(mesh.num_ranks()));
}

TEST(ShardedStep, DividesCausalAttentionOverContext) {
  for (double dropout : {0.0, 0.2})
    for (bool documents : {false, true})
      for (Mesh mesh : {mesh_of(1, 4, 1), mesh_of(2, 2, 2)}) {
        ModelConfig model = tiny();
        model.dropout = dropout;
        expect_context_divided(model, documents, mesh);
      }
}

TEST(ShardedStep, DropsTheSameElementsOfDocuments) {
  ModelConfig model = tiny();
  model.dropout = 0.2;
  expect_same_step_on_all(step_of(model, 8, true));
}

double matmul_flops(const Graph& graph) {
  double flops = 0;
  for (const Node& node : graph.nodes())
    if (node.op == &op::matmul) flops += node_cost(graph, node).flops;
  return flops;
}

// A rank's activations of few tokens are smaller than gradients, but to gather them would repeat the products.
TEST(ShardedStep, SharesProductsForWeightsThoughARankHasFewTokens) {
  ModelConfig model = tiny();
  model.width = 64;
  Graph step = step_of(model, 64);
  Graph share = sharded(step, mesh_of(32, 2, 1), 0);
  EXPECT_NEAR(matmul_flops(share) * 64, matmul_flops(step), 1e-9 * matmul_flops(step));
}

TEST(ShardedStep, MasksDocuments) { expect_same_step_on_all(step_of(tiny(), 8, true)); }

TEST(ShardedStep, IsTheSameWhenNormsAreAddedInPieces) {
  Graph step = step_of(tiny(), 8, false, {}, {.most = 4, .others = 2});
  for (auto [data, context, tensor] : kMeshes)
    for (int64_t zero : {0, data * context > 1 ? 3 : 0}) expect_same_step(step, mesh_of(data, context, tensor), zero);
}

// Bytes that a rank sends in a step, by op.
std::map<std::string_view, double> link_bytes(const Graph& graph) {
  std::map<std::string_view, double> bytes;
  for (const Node& node : graph.nodes())
    if (node.op->together) bytes[node.op->name] += node_cost(graph, node).link_bytes;
  return bytes;
}

TEST(ShardedStep, SendsWhatDataParallelismAndZeroNeed) {
  ModelConfig model = tiny();
  Graph step = step_of(model, 64);  // activations are larger than matrices, as they are where it is used
  auto parameters = 4.0 * double(count_parameters(model));
  constexpr double kScalars = 100;  // loss and norm
  auto sent = link_bytes(sharded(step, mesh_of(4, 1, 1), 0));
  EXPECT_NEAR(sent["all_reduce"], parameters * 1.5, kScalars) << "of 4 ranks, 2 x 3/4 of all gradients";
  EXPECT_EQ(sent.size(), 1u);
  for (int64_t zero : {1, 2}) {
    sent = link_bytes(sharded(step, mesh_of(4, 1, 1), zero));
    EXPECT_NEAR(sent["reduce_scatter"], parameters * 0.75, kScalars);
    EXPECT_NEAR(sent["all_gather"], parameters * 0.75, kScalars);
    EXPECT_NEAR(sent["all_reduce"], 0, kScalars);
    Graph once = sharded(step, mesh_of(4, 1, 1), zero, false, true);
    EXPECT_EQ(link_bytes(once), sent) << "before the passes instead of after the update";
    for (const Node& node : once.nodes())
      if (node.op == &op::all_gather && num_elements(once.shape(node.outputs[0])) > 16) {
        EXPECT_EQ(node.phase, Phase::kForward) << print(once, node);
      }
  }
  sent = link_bytes(sharded(step, mesh_of(4, 1, 1), 3));
  EXPECT_NEAR(sent["reduce_scatter"], parameters * 0.75, kScalars);
  EXPECT_GT(sent["all_gather"], parameters * 0.75 * 1.8) << "matrices for the forward and for the backward pass";
  EXPECT_LT(sent["all_gather"], parameters * 0.75 * 2);
  EXPECT_NEAR(sent["all_reduce"], 0, kScalars);
}

// Gradients go along the inner axis first: along the outer one, between nodes perhaps, a rank sends its share alone.
TEST(ShardedStep, SendsLeastAlongTheOuterAxis) {
  ModelConfig model = tiny();
  auto parameters = 4.0 * double(count_parameters(model));
  Graph share = sharded(step_of(model, 64), mesh_of(4, 2, 1), 1);
  std::map<std::string_view, double> sent;
  for (const Node& node : share.nodes())
    if (node.op->together && node.attrs.get_string("axis") == "data")
      sent[node.op->name] += node_cost(share, node).link_bytes;
  EXPECT_NEAR(sent["reduce_scatter"] / (parameters / 2 * 0.75), 1, 0.1);
  EXPECT_NEAR(sent["all_gather"] / (parameters / 2 * 0.75), 1, 0.1);
}

TEST(ShardedStep, GathersParametersThatZeroCutsHoweverSmallTheBatch) {
  Graph share = sharded(step_of(tiny()), mesh_of(4, 1, 1), 3);
  EXPECT_EQ(count_ops(share, "all_to_all"), 0);
  for (const Node& node : share.nodes())
    if (node.op == &op::all_gather && node.phase != Phase::kUpdate) {
      EXPECT_TRUE(share.argument_of(node.inputs[0])) << print(share, node);
    }
}

// Forward and backward: two sums of the residual stream a layer each, and one for the embedding and the classifier.
TEST(ShardedStep, SendsWhatTensorParallelismNeeds) {
  ModelConfig model = tiny();
  auto sent = link_bytes(sharded(step_of(model), mesh_of(1, 1, 2), 0));
  double stream = 4.0 * 8 * double(model.context * model.width), a_number_a_row = stream / double(model.width);
  EXPECT_NEAR(sent["all_reduce"], stream * double(4 * model.layers + 2) + 3 * a_number_a_row, 100);
}

// The bytes of SendsWhatTensorParallelismNeeds, half of them each way. The gradient of the embedding, of less rows than
// there are tokens, is summed instead of gathering the stream. Other gradients that each rank has of its own tokens are
// small: positions, two of each norm, and the bias of two matrices a layer.
// One rank's part of the stream, where there is one.
Shape read_by_norms(const Graph& share) {
  Shape shape;
  for (const Node& node : share.nodes())
    if (node.op->name.starts_with("layer_norm")) {
      if (shape.empty()) shape = share.shape(node.inputs[0]);
      EXPECT_EQ(share.shape(node.inputs[0]), shape) << print(share, node);
    }
  return shape;
}

TEST(ShardedStep, CutsTheStreamBetweenMatrices) {
  ModelConfig model = tiny();
  Graph step = step_of(model, 63), share = sharded(step, mesh_of(1, 1, 2), 0, true);
  auto sent = link_bytes(share);
  double width = 4.0 * double(model.width), stream = 63 * double(model.context) * width;
  EXPECT_EQ(sent["reduce_scatter"], stream / 2 * double(4 * model.layers + 2) + double(model.vocab) * width / 2);
  EXPECT_EQ(sent["all_gather"], stream / 2 * double(4 * model.layers + 1) + double(model.context) * width / 2);
  double a_number_a_row = stream / double(model.width), vectors = width * double(6 * model.layers + 2);
  EXPECT_NEAR(sent["all_reduce"], 3 * a_number_a_row + vectors, 100);
  EXPECT_LT(peak_live_bytes(share), peak_live_bytes(sharded(step, mesh_of(1, 1, 2), 0)));
  EXPECT_EQ(read_by_norms(share), (Shape{63, model.context / 2, model.width})) << "by time";
}

TEST(ShardedStep, CutsTheStreamAlongTheBatchWhereItCan) {
  ModelConfig model = tiny();
  Graph share = sharded(step_of(model, 64), mesh_of(2, 1, 2), 0, true);
  EXPECT_EQ(read_by_norms(share), (Shape{16, model.context, model.width}));
  for (const Node& node : share.nodes())
    if (node.op == &op::reduce_scatter && share.shape(node.outputs[0]).size() == 3) {
      EXPECT_EQ(share.shape(node.outputs[0]), (Shape{16, model.context, model.width})) << print(share, node);
    }
}

TEST(ShardedStep, NeverGathersWhatTensorParallelismCuts) {
  Graph share = sharded(step_of(tiny()), mesh_of(1, 1, 2), 0);
  for (const Node& node : share.nodes()) {
    if (node.op != &op::all_gather) continue;
    EXPECT_FALSE(share.argument_of(node.inputs[0])) << print(share, node);
    EXPECT_NE(share.shape(node.outputs[0]).back(), tiny().vocab) << "no logits: " << print(share, node);
  }
}

// However many data ranks there are: bytes of activations are those of all of them.
TEST(Shard, MatricesStayCutBesideThousandsOfDataRanks) {
  Graph share = sharded(step_of(tiny(), 8192), mesh_of(2048, 1, 2), 1, true);
  EXPECT_EQ(count_ops(share, "all_to_all"), 0);
  auto gathers_matrix = [&](const Node& node) {
    return node.op == &op::all_gather && node.attrs.get_string("axis") == kTensorAxis &&
           share.argument_of(node.inputs[0]);
  };
  EXPECT_TRUE(std::none_of(share.nodes().begin(), share.nodes().end(), gathers_matrix));
}

}  // namespace
}  // namespace tokamak
