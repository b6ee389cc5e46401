// Generating with the cache gives the logits of the whole sequence.
#include "config/model_config.h"
#include "graph/builder.h"
#include "model/gpt.h"
#include "ops/interpret.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

TEST(GptDecode, EqualsTheWholeSequence) {
  ModelConfig model;
  model.layers = 2, model.heads = 2, model.width = 8, model.context = 6, model.vocab = 11;
  constexpr int64_t B = 2, T = 5;
  Graph whole("whole");
  GraphBuilder g(whole);
  whole.add_result("logits", gpt_logits(g, model, g.input("tokens", {DType::kI32, {B, T}}), kNoValue));
  std::vector<HostTensor> arguments = random_arguments(whole, 5, model.vocab);
  HostTensor expected = interpret(whole, arguments).results[0];  // (B*T, V)

  std::map<std::string, HostTensor> values;
  for (size_t i = 0; i < arguments.size(); ++i) values[whole.arguments()[i].name] = arguments[i];
  int64_t position = 0;
  for (int64_t t : {2, 1, 2}) {
    Graph step = decode_graph(model, B, t);
    std::vector<HostTensor> inputs;
    for (const Argument& argument : step.arguments()) {
      HostTensor& tensor = inputs.emplace_back(step.type(argument.value));
      if (argument.name == "tokens")
        for (int64_t i = 0; i < B * t; ++i) tensor[i] = arguments[0][i / t * T + position + i % t];
      else if (argument.name == "positions")
        for (int64_t i = 0; i < t; ++i) tensor[i] = double(position + i);
      else if (argument.name == "position")
        tensor[0] = double(position);
      else if (values.count(argument.name))
        tensor = values[argument.name];
    }
    Interpretation run = interpret(step, inputs);
    for (size_t u = 0; u < run.updates.size(); ++u)
      values[step.argument_of(step.updates()[u].target)->name] = run.updates[u];
    for (int64_t i = 0; i < run.results[0].size(); ++i) {
      int64_t row = i / model.vocab, b = row / t, at = b * T + position + row % t;
      ASSERT_NEAR(run.results[0][i], expected[at * model.vocab + i % model.vocab], 1e-12);
    }
    position += t;
  }
}

}  // namespace
}  // namespace tokamak::test
