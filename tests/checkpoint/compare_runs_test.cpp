#include "checkpoint/compare_runs.h"
#include "checkpoint/checkpoint_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace tokamak {
namespace {

namespace fs = std::filesystem;

class CompareRuns : public testing::Test {
 protected:
  /// Steps 1 to `steps` with a digest in every second, checkpoints of every third.
  void write(
      const std::string& run, int64_t steps, const std::function<void(StepMetrics&)>& change = [](auto&) {}) {
    std::string text;
    for (int64_t step = 1; step <= steps; ++step) {
      StepMetrics metrics{.step = step, .loss = 5.0 - double(step), .grad_norm = double(step)};
      if (step % 2 == 0) metrics.digest = uint64_t(step) << 60 | 7;
      change(metrics);
      text += format_metrics(metrics) + "\n";
      if (step % 3 == 0) fs::create_directories(checkpoints_folder(folder_ / run) / checkpoint_name(step));
    }
    fs::create_directories(folder_ / run);
    write_file_quickly(folder_ / run / "metrics.jsonl", text);
  }
  RunDifference compare() { return compare_runs(folder_ / "a", folder_ / "b"); }

  TemporaryFolder folder_;
};

TEST_F(CompareRuns, Equal) {
  write("a", 8), write("b", 11);
  RunDifference d = compare();
  EXPECT_FALSE(d.first);
  EXPECT_EQ(d.common, 8);
  EXPECT_EQ(d.digests, 4);
  EXPECT_EQ(d.steps_b, 11);
  EXPECT_EQ(d.checkpoint_a->filename(), checkpoint_name(6));
}

TEST_F(CompareRuns, PartByTheLoss) {
  write("a", 8), write("b", 8, [](StepMetrics& m) {
    if (m.step >= 5) m.loss = std::nextafter(m.loss, 100.0);
  });
  RunDifference d = compare();
  EXPECT_EQ(d.first, 5);
  EXPECT_EQ(d.what, std::vector<std::string>{"loss"});
  EXPECT_EQ(d.same_digest, 4);
  EXPECT_EQ(d.checkpoint_b->filename(), checkpoint_name(6));
}

// As after a flipped bit whose effect on the loss is too small to see at first.
TEST_F(CompareRuns, PartByTheDigestAlone) {
  write("a", 8), write("b", 8, [](StepMetrics& m) {
    if (m.step >= 6 && m.digest) *m.digest ^= 1;
    if (m.step >= 7) m.grad_norm += 1;
  });
  RunDifference d = compare();
  EXPECT_EQ(d.first, 6);
  EXPECT_EQ(d.what, std::vector<std::string>{"digest"});
  EXPECT_EQ(d.same_digest, 4);
  EXPECT_EQ(d.digests, 4);
}

TEST_F(CompareRuns, WithoutDigestsAndCheckpoints) {
  auto without = [](StepMetrics& m) { m.digest = std::nullopt; };
  write("a", 8), write("b", 8, [&](StepMetrics& m) {
    without(m);
    if (m.step == 8) m.grad_norm = 0;
  });
  RunDifference d = compare();
  EXPECT_EQ(d.digests, 0);
  EXPECT_EQ(d.first, 8);
  EXPECT_EQ(d.what, std::vector<std::string>{"gradient norm"});
  EXPECT_FALSE(d.checkpoint_a) << "none is of step 8 or later";
  write("b", 8, without);
  EXPECT_FALSE(compare().first);
}

TEST_F(CompareRuns, WhatIsNoNumberEqualsItself) {
  auto lost = [](StepMetrics& m) { m.loss = std::nan(""); };
  write("a", 3, lost), write("b", 3, lost);
  EXPECT_FALSE(compare().first);
}

TEST_F(CompareRuns, Mistakes) {
  write("a", 3);
  expect_user_error([&] { compare(); }, {"b: expected a run folder", "no such file"});
  fs::create_directory(folder_ / "b");
  write_file_quickly(folder_ / "b/metrics.jsonl", "{\"step\":7,\"loss\":1}\n");
  expect_user_error([&] { compare(); }, {"expected runs with steps in common", "up to 3", "up to 7"});
}

}  // namespace
}  // namespace tokamak
