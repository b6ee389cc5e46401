#include "pages/run_point.h"

#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tokamak {
namespace {

class RunPointTest : public testing::Test {
 protected:
  /// A run of 40 steps of 1000 tokens, of GPT-2's small form with a vocabulary of `vocab`.
  std::string make_run(const std::string& name, int64_t vocab = 512, bool is_evaluated = true, int64_t asked = 40,
                       const std::string& data = "data") {
    std::string lines;
    for (int64_t step = 1; step <= 40; ++step)
      lines += fmt::format(
          "{{\"step\":{},\"loss\":{},\"ms\":500,\"tokens_per_second\":2000{}}}\n", step, 5 - 0.05 * double(step),
          is_evaluated && step % 20 == 0 ? fmt::format(",\"val_loss\":{}", 4 - 0.01 * double(step)) : "");
    std::filesystem::create_directories(folder_ / name);
    write_file_quickly(folder_ / name / "metrics.jsonl", lines);
    write_file_quickly(folder_ / name / "config.json",
                       fmt::format(R"({{"model": {{"layers": 2, "heads": 2, "width": 64, "context": 32, "vocab": {}}},
                                       "data": {{"path": "{}"}}, "train": {{"steps": {}}}}})",
                                   vocab, data, asked));
    return (folder_ / name).string();
  }

  TemporaryFolder folder_;
};

TEST_F(RunPointTest, IsSizeTokensAndTheLastValidationLoss) {
  RunPoint run = read_run_point(make_run("a"));
  EXPECT_EQ(run.point.at.parameters, 512 * 64 + 32 * 64 + 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64);
  EXPECT_NEAR(run.point.at.tokens, 40 * 1000, 1e-6);
  EXPECT_DOUBLE_EQ(run.point.loss, 3.6);
  EXPECT_TRUE(run.notes.empty());
}

TEST_F(RunPointTest, NotesWhatMakesABadPoint) {
  RunPoint run = read_run_point(make_run("a", 512, false, 100));
  EXPECT_NEAR(run.point.loss, 5 - 0.05 * 39.5, 1e-9) << "of the last two of 40 steps";
  ASSERT_EQ(run.notes.size(), 2u);
  EXPECT_NE(run.notes[0].find("no validation loss"), std::string::npos);
  EXPECT_NE(run.notes[1].find("ended after 40 of 100 steps"), std::string::npos);
}

TEST_F(RunPointTest, RunsThatCannotBeComparedAreRefused) {
  std::vector<std::string> notes;
  expect_user_error(
      [&] {
        read_run_points({make_run("a"), make_run("b", 1024)}, notes);
      },
      {"[scaling] expected runs of one tokenizer", "512", "1024"});
  notes.clear();
  EXPECT_EQ(read_run_points({make_run("a"), make_run("c", 512, true, 40, "other")}, notes).size(), 2u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("data of different paths"), std::string::npos);
  expect_user_error([&] { read_run_point(folder_ / "none"); }, {"metrics.jsonl"});
}

TEST_F(RunPointTest, PointsOfAFile) {
  write_file_quickly(folder_ / "points.jsonl",
                     "{\"parameters\": 1e7, \"tokens\": 2e8, \"loss\": 3.9, \"name\": \"first\"}\n\n"
                     "{\"parameters\": 2e7, \"tokens\": 2e8, \"loss\": 3.7}");
  std::vector<ScalingPoint> points = read_point_file(folder_ / "points.jsonl");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].name, "first");
  EXPECT_EQ(points[1].name, "line 3");
  EXPECT_EQ(points[1].at.parameters, 2e7);
  write_file_quickly(folder_ / "bad.jsonl", "{\"parameters\": 1e7, \"tokens\": 0, \"loss\": 3.9}\n");
  expect_user_error([&] { read_point_file(folder_ / "bad.jsonl"); }, {"bad.jsonl:1", "\"tokens\", a number above 0"});
  write_file_quickly(folder_ / "bad.jsonl", "\n[1]\n");
  expect_user_error([&] { read_point_file(folder_ / "bad.jsonl"); }, {"bad.jsonl:2", "a JSON object"});
}

}  // namespace
}  // namespace tokamak
