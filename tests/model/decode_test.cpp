// Generating with the cache gives each token the probability that it has in the whole sequence.
#include "config/model_config.h"
#include "graph/builder.h"
#include "model/model.h"
#include "ops/interpret.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

struct DecodedModel {
  std::string name;
  ModelConfig model;
};

ModelConfig tiny(std::string_view family) {
  return {.family = std::string(family), .layers = 2, .heads = 2, .width = 8, .context = 6, .vocab = 11};
}

// All families as they are where only sizes are said, and with their options.
std::vector<DecodedModel> decoded_models() {
  ModelConfig llama = tiny("llama"), mistral = llama, qwen2 = llama, qwen3 = llama;
  llama.rope_scaling = "llama3", llama.rope_factor = 3, llama.rope_original_context = 20;
  mistral.window = 3, mistral.kv_heads = 1;
  qwen2.qkv_bias = true, qwen2.kv_heads = 1;
  qwen3.qk_norm = true, qwen3.head_width = 6;
  ModelConfig modern = tiny("modern"), gated = modern, deep = modern;
  modern.qk_norm = modern.embedding_norm = true, modern.softcap = 3;
  gated.activation = "silu", gated.norm_weights = true, gated.kv_heads = 1, gated.value_embeddings = 1;
  gated.softcap = 2, gated.softcap_shift = 1, gated.softcap_width = 4;
  deep.layers = 5, deep.activation = "gelu", deep.skip_blocks = deep.x0_mix = true, deep.value_embeddings = 2;
  deep.window = 2, deep.window_pattern = "SSL";
  std::vector<DecodedModel> models = {{"llama3", llama},  {"mistral", mistral}, {"qwen2", qwen2}, {"qwen3", qwen3},
                                      {"capped", modern}, {"gated", gated},     {"deep", deep}};
  for (const ModelFamily* family : model_families()) models.push_back({std::string(family->name), tiny(family->name)});
  return models;
}

class Decode : public ::testing::TestWithParam<DecodedModel> {};

double loss_of(const HostTensor& logits, int64_t row, int64_t target) {
  const int64_t V = logits.shape().back();
  double sum = 0;
  for (int64_t i = 0; i < V; ++i) sum += std::exp(logits[row * V + i]);
  return std::log(sum) - logits[row * V + target];
}

TEST_P(Decode, EqualsTheWholeSequence) {
  const ModelConfig& model = GetParam().model;
  const int64_t B = 2, T = model.context;
  Graph whole = eval_graph(model, B, T);
  std::vector<HostTensor> arguments = random_arguments(whole, 5, model.vocab);  // tokens and targets first
  double expected = interpret(whole, arguments).results[0][0], loss = 0;

  std::map<std::string, HostTensor> values;
  for (size_t i = 0; i < arguments.size(); ++i) values[whole.arguments()[i].name] = arguments[i];
  int64_t position = 0;
  for (int64_t t : {2, 1, 3}) {
    Graph step("step");
    GraphBuilder h(step);
    DecodeInputs in;
    in.tokens = h.input("tokens", {DType::kI32, {B, t}});
    in.positions = h.input("positions", {DType::kI32, {B, t}});
    in.start = h.input("start", {DType::kI32, {B}});
    step.add_result("logits", family_of(model).decode(h, model, in));
    std::vector<HostTensor> inputs;
    for (const Argument& argument : step.arguments()) {
      HostTensor& tensor = inputs.emplace_back(step.type(argument.value));
      if (argument.name == "tokens")
        for (int64_t i = 0; i < B * t; ++i) tensor[i] = arguments[0][i / t * T + position + i % t];
      else if (argument.name == "positions")
        for (int64_t i = 0; i < B * t; ++i) tensor[i] = double(position + i % t);
      else if (argument.name == "start")
        for (int64_t b = 0; b < B; ++b) tensor[b] = double(position);
      else if (values.count(argument.name))
        tensor = values[argument.name];
    }
    Interpretation run = interpret(step, inputs);
    for (size_t u = 0; u < run.updates.size(); ++u)
      values[step.argument_of(step.updates()[u].target)->name] = run.updates[u];
    for (int64_t row = 0; row < B * t; ++row)
      loss += loss_of(run.results[0], row, int64_t(arguments[1][row / t * T + position + row % t])) / double(B * T);
    position += t;
  }
  EXPECT_NEAR(loss, expected, 1e-12);
}
INSTANTIATE_TEST_SUITE_P(Families, Decode, ::testing::ValuesIn(decoded_models()),
                         [](const auto& info) { return info.param.name; });

// What decode_graph chooses from are the logits of the row's own position, and it says where to go on.
TEST(GptDecode, TakesTheLikeliestTokenAndGoesOn) {
  ModelConfig model;
  model.layers = 1, model.heads = 2, model.width = 8, model.context = 6, model.vocab = 11;
  Graph graph = decode_graph(model, 2, DType::kF32);
  std::vector<HostTensor> arguments = random_arguments(graph, 5, model.vocab);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = graph.arguments()[i].name;
    if (name == kNextPosition) arguments[i].data = {3, 5};
    if (name == kTokensDrawn) arguments[i].data = {7, 8};
    if (name == "settings") arguments[i].data = {0, 0, 1};
  }
  Interpretation run = interpret(graph, arguments);
  for (size_t u = 0; u < run.updates.size(); ++u) {
    const std::string& name = graph.argument_of(graph.updates()[u].target)->name;
    if (name == kNextToken) EXPECT_EQ(run.updates[u].data, run.results[0].data);
    if (name == kNextPosition) EXPECT_EQ(run.updates[u].data, (std::vector<double>{4, 5}));  // 5 is the last place
    if (name == kTokensDrawn) EXPECT_EQ(run.updates[u].data, (std::vector<double>{8, 9}));
  }
}

}  // namespace
}  // namespace tokamak::test
