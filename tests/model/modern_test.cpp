#include "model/modern.h"

#include "config/model_config.h"
#include "graph/builder.h"
#include "graph/text.h"
#include "model/llama.h"
#include "ops/interpret.h"
#include "tests/support/expect_error.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tokamak::test {
namespace {

ModelConfig tiny() {
  return {.family = "modern", .layers = 5, .heads = 4, .width = 16, .context = 8, .vocab = 11, .kv_heads = 2};
}

ModelConfig with_everything() {
  ModelConfig model = tiny();
  model.tie_weights = false;
  model.qk_norm = model.norm_weights = model.embedding_norm = model.skip_blocks = model.x0_mix = true;
  model.value_embeddings = 2;
  model.softcap = 3;
  return model;
}

TEST(Modern, WithAGateAndWeightsOfNormsIsLlama) {
  ModelConfig model = tiny(), llama = tiny();
  model.activation = "silu";
  model.norm_weights = true;
  llama.family = "llama";
  for (ModelConfig* of : {&model, &llama}) of->qk_norm = true, of->window = 3;
  EXPECT_EQ(print(forward_graph("step", model, 2, 8, true)), print(forward_graph("step", llama, 2, 8, true)));
  EXPECT_EQ(print(decode_graph(model, 2, DType::kF32)), print(decode_graph(llama, 2, DType::kF32)));
  EXPECT_EQ(flops_per_token(model).causal, flops_per_token(llama).causal);
}

TEST(Modern, RefusesWhatItCannotBe) {
  expect_user_error([] { eval_graph(tiny(), 1, 9); },
                    {"[modern] expected sequences of at most model.context = 8 tokens, got 9"});
  ModelConfig odd = tiny();
  odd.head_width = 3;
  expect_user_error([&] { modern_parameters(odd); }, {"[model.head_width] expected an even width", "got 3"});
}

TEST(Modern, ParametersSayWhereTheyStandInTheModel) {
  std::set<std::string> scales, tables;
  for (const ParameterInfo& info : modern_parameters(with_everything())) {
    auto named = [&](std::initializer_list<std::string_view> ends) {
      for (std::string_view end : ends)
        if (info.name.ends_with(end)) return true;
      return false;
    };
    bool apart = named({"q_proj.weight", "k_proj.weight", "v_proj.weight", "up_proj.weight"});
    Role expected = named({"embed_tokens.weight"})                 ? Role::kEmbedding
                    : named({"lm_head.weight"})                    ? Role::kClassifier
                    : named({"value_embed.weight"})                ? Role::kValueTable
                    : apart                                        ? Role::kColumn
                    : named({"o_proj.weight", "down_proj.weight"}) ? Role::kRow
                                                                   : Role::kVector;
    EXPECT_EQ(info.role, expected) << info.name;
    EXPECT_EQ(is_matrix(info.role), info.shape.size() == 2) << info.name;
    if (info.role == Role::kValueTable) tables.insert(info.name + to_string(info.shape));
    if (named({"_scale"})) scales.insert(info.name + to_string(info.shape));
    double begins = named({"x0_scale"}) ? 0 : named({"v_scale", "value_embed_scale"}) ? 0.5 : 1;
    if (info.role == Role::kVector) EXPECT_EQ(info.init_value, begins) << info.name;
  }
  EXPECT_EQ(tables.size(), 3u);
  EXPECT_TRUE(tables.contains("model.layers.0.self_attn.value_embed.weight[11,8]"));
  EXPECT_EQ(scales.size(), 2 * 5 + 2 + 2 * 3u);
  EXPECT_TRUE(scales.contains("model.layers.3.skip_scale[1]") && scales.contains("model.layers.4.skip_scale[1]"));
}

TEST(Modern, BeginsAtZeroWhereItAddsToTheStream) {
  ModelConfig model = with_everything();
  for (bool zero : {false, true}) {
    model.zero_init = zero;
    for (const ParameterInfo& info : modern_parameters(model)) {
      bool adds = info.role == Role::kRow || info.role == Role::kClassifier;
      if (is_matrix(info.role)) EXPECT_EQ(info.init_std == 0, adds && zero) << info.name;
    }
  }
}

TEST(Modern, CountsWhatATokenIsMultipliedWithAndSees) {
  ModelConfig plain = tiny(), model = tiny();
  model.value_embeddings = 1;
  EXPECT_EQ(flops_per_token(model).multiplied_parameters, flops_per_token(plain).multiplied_parameters + 2 * 5);
  model = plain;
  model.window = 2, model.window_pattern = "SSL";
  FlopsPerToken flops = flops_per_token(model);
  EXPECT_EQ(flops.full, flops_per_token(plain).full);
  // Of 8 tokens a window of 2 shows 2, of the first one 1 less half of the diagonal: 2 - 4 / 16; all: 4.
  EXPECT_DOUBLE_EQ(flops.causal - 6.0 * double(flops.multiplied_parameters), 12 * 16 * (4 * 1.75 + 4));
}

// Values of all arguments by name, the same for each graph.
HostTensor loss_of(const Graph& graph, double share) {
  std::vector<HostTensor> arguments = random_arguments(graph, 5, 11);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (graph.arguments()[i].name == "window_share") arguments[i][0] = share;
  return interpret(graph, arguments).results[0];
}

ValueId graph_loss(Graph& graph, const ModelConfig& model, bool warms) {
  GraphBuilder g(graph);
  LossInputs in;
  in.tokens = g.input("tokens", {DType::kI32, {2, 8}});
  in.targets = g.input("targets", {DType::kI32, {2, 8}});
  ValueId share = g.input("window_share", {DType::kF32, {}});
  if (warms) in.window_share = share;
  ValueId loss = modern_loss(g, model, in);
  graph.add_result("loss", loss);
  return loss;
}

TEST(Modern, WindowsWarmUp) {
  ModelConfig model = tiny();
  model.window = 4, model.window_pattern = "SL";
  Graph warming("warming");
  graph_loss(warming, model, true);
  struct Warm {
    double share;
    int64_t window, context;
  };
  for (const Warm& warm : {Warm{1, 4, 8}, Warm{0.5, 2, 4}, Warm{0.3, 1, 2}, Warm{0.01, 1, 1}}) {
    // Long ones shrink as well: a model whose layers all have a window tells the lengths apart.
    auto of_layers = [&](int64_t window, const char* pattern) {
      ModelConfig fixed = model;
      fixed.window = window, fixed.window_pattern = pattern;
      Graph graph("fixed");
      graph_loss(graph, fixed, false);
      return loss_of(graph, 1)[0];
    };
    ModelConfig all_short = model;
    all_short.window_pattern = "S";
    Graph short_ones("short"), long_ones("long");
    graph_loss(short_ones, all_short, true);
    all_short.window = 0;
    graph_loss(long_ones, all_short, true);
    EXPECT_NEAR(loss_of(short_ones, warm.share)[0], of_layers(warm.window, "S"), 1e-12) << warm.share;
    EXPECT_NEAR(loss_of(long_ones, warm.share)[0], of_layers(warm.context, "S"), 1e-12) << warm.share;
  }
  Graph whole("whole");
  graph_loss(whole, model, false);
  EXPECT_NEAR(loss_of(warming, 1)[0], loss_of(whole, 1)[0], 1e-12);
  EXPECT_GT(std::fabs(loss_of(warming, 0.5)[0] - loss_of(whole, 1)[0]), 1e-6);
}

TEST(Modern, OnlyTrainingWarmsUp) {
  ModelConfig model = tiny();
  model.window_warmup_steps = 10;
  EXPECT_NE(forward_graph("step", model, 2, 8, false).find_argument("window_share"), kNoValue);
  EXPECT_EQ(eval_graph(model, 2, 8).find_argument("window_share"), kNoValue);
  model.family = "llama";
  EXPECT_EQ(forward_graph("step", model, 2, 8, false).find_argument("window_share"), kNoValue);
}

TEST(Modern, DropsEachTensorByAStreamOfItsOwn) {
  ModelConfig model = tiny();
  model.dropout = 0.1;
  std::set<int64_t> streams;
  int64_t random_nodes = 0;
  Graph graph = forward_graph("step", model, 2, 8, false);
  for (const Node& node : graph.nodes()) {
    if (!node.attrs.find("stream")) continue;
    ++random_nodes;
    streams.insert(node.attrs.get_int("stream"));
  }
  EXPECT_EQ(random_nodes, 1 + 3 * model.layers);
  EXPECT_EQ(int64_t(streams.size()), random_nodes);
}

// Nothing of (B T, V) but the logits themselves: the loss caps them.
TEST(Modern, StoresNoCappedLogits) {
  ModelConfig model = tiny();
  model.softcap = 15;
  Graph graph = forward_graph("step", model, 2, 8, false);
  int64_t logits = 0;
  for (const Node& node : graph.nodes())
    for (ValueId output : node.outputs) logits += graph.shape(output) == Shape{16, 11};
  EXPECT_EQ(logits, 1);
}

}  // namespace
}  // namespace tokamak::test
