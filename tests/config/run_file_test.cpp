#include "config/run_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/core.h>

#include "config/config.h"
#include "config/json.h"
#include "tests/config/test_options.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

class RunFile : public testing::Test {
 protected:
  RunConfig read(const std::filesystem::path& path) {
    TestOptions options;
    std::vector<Field> fields = fields_of(options);
    assign(fields, read_run_file(fields, path.string()).assignments);
    return options.run;
  }

  TemporaryFolder folder_;
};

TEST_F(RunFile, SaysHowDataAndOptionsAreWritten) {
  expect_user_error([&] { read(folder_.path()); }, {"without config.json", "--data.path=" + folder_.path().string()});
  expect_user_error([&] { read("train.steps=5"); }, {"nothing of that name", "written --train.steps=5"});
  write_file_quickly(folder_ / "a.txt", "In the beginning\n");
  expect_user_error([&] { read(folder_ / "a.txt"); }, {"a.txt:1", "expected TOML", "--data.path"});
}

TEST_F(RunFile, TomlAndJsonByWhatIsInThem) {
  write_file_quickly(folder_ / "a", "[train]\nsteps = 7\n");
  EXPECT_EQ(read(folder_ / "a").train.steps, 7);
  RunConfig config;
  config.train.steps = 8;
  config.model.preset = "gpt2-355m";
  config.model.layers = 3;
  write_file_quickly(folder_ / "b", fmt::format("\n{}", to_json(config)));
  EXPECT_EQ(to_json(read(folder_ / "b")), to_json(config));
}

TEST_F(RunFile, AFolderStandsForItsRun) {
  RunConfig config;
  config.train.steps = 8;
  config.train.out = "elsewhere";
  std::filesystem::create_directory(folder_ / "run");
  write_file_quickly(folder_ / "run/config.json", to_json(config));
  EXPECT_EQ(read(folder_ / "run").train.steps, 8);
  EXPECT_EQ(read(folder_ / "run").train.out, (folder_ / "run").string());
}

TEST_F(RunFile, Mistakes) {
  expect_user_error([&] { read(folder_.path()); }, {"expected a run file or the folder of a run", "config.json"});
  write_file_quickly(folder_ / "a.json", R"({"train": {"stepz": 3}})");
  expect_user_error([&] { read(folder_ / "a.json"); }, {"a.json: train.stepz", "did you mean 'train.steps'?"});
  write_file_quickly(folder_ / "b.json", R"({"train": {"steps": )");
  expect_user_error([&] { read(folder_ / "b.json"); }, {"b.json", "expected a JSON object"});
}

}  // namespace
}  // namespace tokamak
