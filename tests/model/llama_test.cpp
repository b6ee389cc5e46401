#include "model/llama.h"

#include "config/model_config.h"
#include "graph/builder.h"
#include "ops/interpret.h"
#include "tests/support/expect_error.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tokamak::test {
namespace {

ModelConfig tiny() {
  return {.family = "llama", .layers = 2, .heads = 4, .width = 16, .context = 6, .vocab = 11, .kv_heads = 2};
}

std::vector<double> logits(const ModelConfig& model, double first_token) {
  Graph graph("logits");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {1, model.context}});
  graph.add_result("logits", llama_logits(g, model, tokens, kNoValue));
  std::vector<HostTensor> arguments = random_arguments(graph, 5, model.vocab);
  arguments[0][0] = first_token;
  return interpret(graph, arguments).results[0].data;
}

TEST(Llama, RefusesWhatItCannotBe) {
  expect_user_error([] { eval_graph(tiny(), 1, 7); },
                    {"[llama] expected sequences of at most model.context = 6 tokens, got 7"});
  ModelConfig odd = tiny(), both = tiny();
  odd.head_width = 3;
  expect_user_error([&] { llama_parameters(odd); }, {"[model.head_width] expected an even width", "got 3"});
  both.qkv_bias = both.qk_norm = true;
  expect_user_error([&] { llama_parameters(both); }, {"[model.qkv_bias] expected false with model.qk_norm"});
}

TEST(Llama, DropsEachTensorByAStreamOfItsOwn) {
  ModelConfig model = tiny();
  model.dropout = 0.1;
  Graph graph = forward_graph("step", model, 2, 6, false);
  std::set<int64_t> streams;
  int64_t random_nodes = 0;
  for (const Node& node : graph.nodes()) {
    if (!node.attrs.find("stream")) continue;
    ++random_nodes;
    streams.insert(node.attrs.get_int("stream"));
  }
  EXPECT_EQ(random_nodes, 1 + 3 * model.layers);  // the embeddings; attention and both ends of a block
  EXPECT_EQ(int64_t(streams.size()), random_nodes);
}

// In one layer a token sees the first one through its keys and values alone.
TEST(Llama, AWindowHidesWhatIsFartherAway) {
  ModelConfig model = tiny();
  model.layers = 1;
  model.window = 3;
  std::vector<double> one = logits(model, 1), other = logits(model, 2);
  for (int64_t t = 0; t < model.context; ++t) {
    bool differs = false;
    for (int64_t i = 0; i < model.vocab; ++i)
      differs |= std::fabs(one[size_t(t * model.vocab + i)] - other[size_t(t * model.vocab + i)]) > 1e-9;
    EXPECT_EQ(differs, t < 3) << t;
  }
}

TEST(Llama, AWindowOfTheWholeSequenceIsNone) {
  ModelConfig model = tiny(), windowed = tiny();
  windowed.window = 6;
  EXPECT_EQ(logits(model, 1), logits(windowed, 1));
  windowed.window = 5;
  EXPECT_NE(logits(model, 1), logits(windowed, 1));
}

TEST(Llama, ParametersSayWhereTheyStandInTheModel) {
  ModelConfig model = tiny();
  model.qkv_bias = true;
  model.tie_weights = false;
  for (const ParameterInfo& info : llama_parameters(model)) {
    auto named = [&](std::initializer_list<std::string_view> ends) {
      for (std::string_view end : ends)
        if (info.name.ends_with(end)) return true;
      return false;
    };
    bool apart = named({"q_proj.weight", "k_proj.weight", "v_proj.weight", "gate_proj.weight", "up_proj.weight"});
    Role expected = named({"embed_tokens.weight"})                 ? Role::kEmbedding
                    : named({"lm_head.weight"})                    ? Role::kClassifier
                    : apart                                        ? Role::kColumn
                    : named({"o_proj.weight", "down_proj.weight"}) ? Role::kRow
                    : named({".bias"})                             ? Role::kColumnBias
                                                                   : Role::kVector;
    EXPECT_EQ(info.role, expected) << info.name;
    EXPECT_EQ(info.transposed, expected == Role::kColumn || expected == Role::kRow) << info.name;
    EXPECT_EQ(is_matrix(info.role), info.shape.size() == 2) << info.name;
    if (named({"k_proj.weight"})) EXPECT_EQ(info.shape, (Shape{8, 16}));
  }
}

}  // namespace
}  // namespace tokamak::test
