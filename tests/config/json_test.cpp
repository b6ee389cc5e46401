#include "config/json.h"

#include <gtest/gtest.h>

#include "config/config.h"
#include "config/visit.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

TEST(Json, EveryFieldSurvivesWritingAndReading) {
  RunConfig config;
  config.model.preset = "gpt2-355m";
  config.model.layers = 7;  // not the preset's: what is stored outranks it
  config.optimizer.lr = 0.1 / 3;
  config.optimizer.weight_decay = 0;
  config.train.out = "a \"b\"\n";
  config.train.seed = int64_t(1) << 60;
  config.train.resume = false;
  config.compile.disable_passes = {"fuse", ""};
  config.threads = 3;
  RunConfig read = run_config_from_json(to_json(config), "state.json");
  std::vector<Field> expected = fields_of(config), fields = fields_of(read);
  for (size_t i = 0; i < fields.size(); ++i) EXPECT_EQ(get(fields[i]), get(expected[i])) << fields[i].key;
}

// Of a run before compile.disable_passes was the only way to switch a pass off.
TEST(Json, ReadsTheSwitchesOfEarlierVersions) {
  RunConfig read = run_config_from_json(R"({"compile": {"precision": "fp16", "fuse": false, "flash_attention": true,
      "pad_vocab": true, "fused_optimizer": false, "chunked_classifier": false, "disable_passes": ["merge_casts"]}})",
                                        "state.json");
  EXPECT_EQ(read.compile.disable_passes,
            (std::vector<std::string>{"merge_casts", "fuse", "fused_optimizer", "chunked_classifier"}));
  EXPECT_EQ(read.compile.precision, Precision::kFp16);
  read = run_config_from_json(R"({"compile": {"fuse": true}})", "state.json");
  EXPECT_TRUE(read.compile.disable_passes.empty());
  EXPECT_EQ(to_json(read), to_json(RunConfig()));
  expect_user_error([] { run_config_from_json(R"({"compile": {"fused": true}})", "state.json"); },
                    {"expected a known key, got 'compile.fused'"});
}

TEST(Json, LeavesOutWhatIsNoMore) {
  RunConfig read = run_config_from_json(R"({"mesh": {"tensor": 2, "halves": true}})", "state.json");
  EXPECT_EQ(read.mesh.tensor, 2);
}

TEST(Json, MistakesNameTheFileAndTheKey) {
  auto read = [](const char* text) { run_config_from_json(text, "state.json"); };
  expect_user_error([&] { read("{"); }, {"[state.json] expected a JSON object"});
  expect_user_error([&] { read(R"({"model": {"layers": "x"}})"); },
                    {"[state.json: model.layers] expected a whole number"});
  expect_user_error([&] { read(R"({"model": {"layer": 1}})"); }, {"did you mean 'model.layers'?"});
  expect_user_error([&] { read(R"({"threads": null})"); }, {"expected a value, got null"});
}

TEST(Json, NumbersWithoutAFractionAreWhole) {
  auto read = [](const char* text) { return run_config_from_json(text, "state.json"); };
  EXPECT_EQ(read(R"({"train": {"steps": 1e4}})").train.steps, 10'000);
  expect_user_error([&] { read(R"({"train": {"steps": 1.5}})"); }, {"[state.json: train.steps]", "got 1.5"});
  // 2^64 - 1 as 64 bits with a sign would be the -1 that means "the data's".
  expect_user_error([&] { read(R"({"data": {"end_of_text": 18446744073709551615}})"); },
                    {"at most 9223372036854775807, got 1.84"});
}

TEST(Json, RefusesDeepObjects) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += R"({"model":)";
  text += "1" + std::string(20'000, '}');
  expect_user_error([&] { run_config_from_json(text, "config.json"); }, {"[config.json]", "JSON object"});
}

}  // namespace
}  // namespace tokamak
