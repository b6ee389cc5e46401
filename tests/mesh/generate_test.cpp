// Text from ranks that are threads, over which a model is divided, is the text of one rank.
#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/parallel.h"
#include "passes/step_mesh.h"
#include "tests/support/generated_text.h"
#include "tests/support/resolve_first.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

constexpr int64_t kContext = 40, kRows = 5;

RunConfig tiny(bool tied) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 4, .width = 32, .context = kContext, .vocab = 301};
  config.model.tie_weights = tied;
  config.train.batch = 1;
  config.compile.precision = Precision::kFp32;
  return config;
}

using Texts = std::vector<std::vector<int32_t>>;

// Of prompts of all lengths, on beyond a full context; the second ends early.
Texts generate(Generator& generator, const SamplingOptions& options) {
  std::vector<GenerationRow> rows;
  for (int64_t length : {1, 35, 70}) rows.push_back({some_tokens(length, length), 9 + length});
  size_t known = 0;
  return generator.generate(rows, 50, options, [&](size_t row, int32_t) { return row != 1 || ++known < 20; });
}

// The same large weights for all.
Texts texts_of(const RunConfig& config, const MeshRanks* ranks, const SamplingOptions& options) {
  auto backend = cpu::make_backend();
  set_num_threads(1);  // ranks share the cores
  Generator generator(resolve(config, {}), cpu::nominal_platform(1), *backend, kRows, nullptr, 0, ranks);
  write_large_weights(config.model, generator.weights());
  return generate(generator, options);
}

class GenerateOnRanks : public testing::TestWithParam<std::tuple<int64_t, bool>> {};

TEST_P(GenerateOnRanks, GivesTheTextOfOne) {
  auto [tensor, tied] = GetParam();
  RunConfig config = tiny(tied);
  for (double temperature : {0.0, 1.0}) {
    SamplingOptions options{.temperature = temperature, .top_k = 40};
    Texts expected = texts_of(config, nullptr, options);
    EXPECT_NE(expected[0], expected[1]);
    run_ranks(int(tensor), [&, tensor = tensor](Communicator& world) {
      MeshRanks ranks(step_mesh({.data = 1, .tensor = tensor}), world);
      EXPECT_EQ(texts_of(config, &ranks, options), expected) << "temperature " << temperature;
    });
  }
}

TEST(RanksThatGenerate, GiveTheTextOfOneOfLlama) {
  RunConfig config = tiny(true);
  config.model.family = "llama";
  config.model.kv_heads = 2, config.model.hidden = 48, config.model.window = 11;
  Texts expected = texts_of(config, nullptr, {});
  run_ranks(2, [&](Communicator& world) {
    MeshRanks ranks(step_mesh({.data = 1, .tensor = 2}), world);
    EXPECT_EQ(texts_of(config, &ranks, {}), expected);
  });
}

TEST(RanksThatGenerate, GiveTheTextOfOneOfModern) {
  RunConfig config = tiny(false);
  config.model.family = "modern";
  config.model.kv_heads = 2, config.model.window = 11, config.model.window_pattern = "SL";
  config.model.value_embeddings = 1, config.model.softcap = 3, config.model.x0_mix = true;
  Texts expected = texts_of(config, nullptr, {});
  run_ranks(2, [&](Communicator& world) {
    MeshRanks ranks(step_mesh({.data = 1, .tensor = 2}), world);
    EXPECT_EQ(texts_of(config, &ranks, {}), expected);
  });
}

TEST(RanksThatGenerate, GiveTheTextOfOneWhereTheyDoNotDivideTheHeads) {
  for (const char* family : {"gpt2", "llama"}) {
    RunConfig config = tiny(true);
    config.model.family = family;
    config.model.heads = 3, config.model.width = 24, config.model.hidden = 49;
    Texts expected = texts_of(config, nullptr, {});
    run_ranks(2, [&](Communicator& world) {
      MeshRanks ranks(step_mesh({.data = 1, .tensor = 2}), world);
      EXPECT_EQ(texts_of(config, &ranks, {}), expected) << family;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, GenerateOnRanks, testing::Combine(testing::Values(2, 4), testing::Bool()),
                         [](const auto& info) {
                           return fmt::format("tensor{}_{}", std::get<0>(info.param),
                                              std::get<1>(info.param) ? "tied" : "untied");
                         });

// On a mesh of other axes, too: each group along tensor generates by itself.
void expect_parts_that_are_trained(RunConfig config) {
  Texts expected = texts_of(config, nullptr, {});
  config.train.batch = 2;
  config.mesh = {.data = 2, .tensor = 2, .zero = 1};
  run_ranks(4, [&](Communicator& world) {
    MeshRanks ranks(step_mesh(config.mesh), world), group({{{kTensorAxis, 2}}}, ranks.along(kTensorAxis));
    auto backend = cpu::make_backend();
    set_num_threads(1);
    Session session = make_session(config, cpu::nominal_platform(1), *backend, 0, &ranks);
    write_large_weights(session);
    Generator generator(resolve(config, {}), cpu::nominal_platform(1), *backend, kRows, &session.store(), 0, &group);
    EXPECT_EQ(generate(generator, {}), expected);
    for (const ParameterInfo& info : session.parameters())
      EXPECT_EQ(generator.weights().data(info.name), session.store().data(info.name)) << info.name;
  });
}

TEST(RanksThatGenerate, TakeThePartsThatTheyTrain) {
  RunConfig config = tiny(true);
  expect_parts_that_are_trained(config);
  config.model.heads = 3, config.model.width = 24;
  expect_parts_that_are_trained(config);
}

// What makes a model fit that one device has no room for.
TEST(RanksThatGenerate, DivideParametersAndCaches) {
  RunConfig config = tiny(false);
  auto bytes = [&](const MeshRanks* ranks) {
    auto backend = cpu::make_backend();
    Generator generator(resolve(config, {}), cpu::nominal_platform(1), *backend, kRows, nullptr, 0, ranks);
    return generator.weights().bytes();
  };
  int64_t whole = bytes(nullptr);
  run_ranks(4, [&](Communicator& world) {
    MeshRanks ranks(step_mesh({.data = 1, .tensor = 4}), world);
    EXPECT_LT(double(bytes(&ranks)), 0.35 * double(whole));
  });
}

}  // namespace
}  // namespace tokamak::test
