#include "data/ledger.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/data/ledger_lines.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

DataRecord one_dataset(int64_t windows) {
  return {.seed = 7,
          .context = 16,
          .datasets = {{.path = "web", .kind = "tokens", .share = {windows, kMixtureBlock}, .files = {}}}};
}

DataRecord mixture() {
  DataRecord record = one_dataset(1000);
  record.datasets[0].share.quota = 3000;
  record.datasets.push_back({.path = "books", .kind = "tokens", .share = {300, 1096}, .files = {}});
  return record;
}

void expect_segment(const LedgerSegment& got, int64_t first_step, int64_t end_step, int64_t first_sample) {
  EXPECT_EQ(got.first_step, first_step);
  EXPECT_EQ(got.end_step, end_step);
  EXPECT_EQ(got.first_sample, first_sample);
}

bool mentions(const std::vector<std::string>& problems, const std::string& piece) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const std::string& problem) { return problem.find(piece) != std::string::npos; });
}

/// Broken in the lines or in the counts?
bool is_proven(const std::vector<LedgerLine>& lines, const DataRecord& record) {
  Ledger ledger = replay_ledger(lines, record);
  std::vector<DatasetUse> uses = count_uses(ledger, record);
  return ledger.problems.empty() &&
         std::all_of(uses.begin(), uses.end(), [](const DatasetUse& use) { return use.problem.empty(); });
}

TEST(Ledger, OfARunWithoutRestarts) {
  DataRecord record = one_dataset(30);
  Ledger ledger = replay_ledger(LedgerLines(record).start(0).checkpoint(5).end(20).lines(), record);
  EXPECT_TRUE(ledger.problems.empty()) << ledger.problems.at(0);
  EXPECT_TRUE(ledger.lost.empty());
  EXPECT_TRUE(ledger.ended);
  ASSERT_EQ(ledger.segments.size(), 1u);
  expect_segment(ledger.segments[0], 0, 20, 0);
  EXPECT_EQ(ledger.samples(), 80);
  EXPECT_EQ(ledger.segment_of_step(19), &ledger.segments[0]);
  EXPECT_EQ(ledger.segment_of_step(20), nullptr);
  EXPECT_EQ(ledger.segment_of_sample(79), &ledger.segments[0]);
  EXPECT_EQ(ledger.segment_of_sample(80), nullptr);
  std::vector<DatasetUse> uses = count_uses(ledger, record);  // 80 = 2 * 30 + 20
  EXPECT_EQ(uses[0].problem, "");
  EXPECT_EQ(uses[0].least, 2);
  EXPECT_EQ(uses[0].at_least, 10);
  EXPECT_EQ(uses[0].most, 3);
  EXPECT_EQ(uses[0].at_most, 20);
}

TEST(Ledger, LostStepsAreDoneAgainAndCountOnce) {
  DataRecord record = one_dataset(30);
  auto lines = LedgerLines(record).start(0).checkpoint(10).start(10, 14).checkpoint(20).end(25).lines();
  Ledger ledger = replay_ledger(lines, record);
  EXPECT_TRUE(ledger.problems.empty()) << ledger.problems.at(0);
  EXPECT_EQ(ledger.starts, 2);
  ASSERT_EQ(ledger.lost.size(), 1u);
  EXPECT_EQ(ledger.lost[0].first_step, 10);
  EXPECT_EQ(ledger.lost[0].end_step, 14);
  ASSERT_EQ(ledger.segments.size(), 2u);
  expect_segment(ledger.segments[0], 0, 10, 0);
  expect_segment(ledger.segments[1], 10, 25, 40);
  EXPECT_TRUE(is_proven(lines, record));
}

TEST(Ledger, GoesBackBeyondACheckpointThatWasDamaged) {
  DataRecord record = one_dataset(30);
  LedgerLines lines(record);
  lines.start(0).checkpoint(10).start(10).checkpoint(20).checkpoint(30).start(5, 33).checkpoint(15);
  Ledger ledger = replay_ledger(lines.lines(), record);
  EXPECT_TRUE(ledger.problems.empty()) << ledger.problems.at(0);
  ASSERT_EQ(ledger.segments.size(), 2u);
  expect_segment(ledger.segments[0], 0, 5, 0);
  expect_segment(ledger.segments[1], 5, 15, 20);
  ASSERT_EQ(ledger.lost.size(), 1u);
  EXPECT_EQ(ledger.lost[0].first_step, 5);
  EXPECT_EQ(ledger.lost[0].end_step, 33);
  EXPECT_TRUE(is_proven(lines.lines(), record));
  // A run that begins anew in all but its folder.
  lines.start(0, 15).checkpoint(3);
  ledger = replay_ledger(lines.lines(), record);
  ASSERT_EQ(ledger.segments.size(), 1u);
  expect_segment(ledger.segments[0], 0, 3, 0);
}

TEST(Ledger, KilledBetweenACheckpointAndItsLine) {
  DataRecord record = one_dataset(30);
  auto lines = LedgerLines(record).start(0).start(10).lines();
  Ledger ledger = replay_ledger(lines, record, SavedState{15, 60});
  EXPECT_TRUE(ledger.problems.empty()) << ledger.problems.at(0);
  ASSERT_EQ(ledger.segments.size(), 2u);
  expect_segment(ledger.segments[0], 0, 10, 0);
  expect_segment(ledger.segments[1], 10, 15, 40);
}

TEST(Ledger, TheNewestCheckpointIsTheState) {
  DataRecord record = one_dataset(30);
  auto lines = LedgerLines(record).start(0).checkpoint(10).checkpoint(20).lines();
  Ledger ledger = replay_ledger(lines, record, SavedState{10, 40});  // that of step 20 is damaged or gone
  EXPECT_TRUE(ledger.problems.empty()) << ledger.problems.at(0);
  EXPECT_EQ(ledger.steps(), 10);
  ASSERT_EQ(ledger.lost.size(), 1u);
  EXPECT_EQ(ledger.lost[0].end_step, 20);
  EXPECT_TRUE(
      mentions(replay_ledger(lines, record, SavedState{20, 81}).problems, "the checkpoint of that step has 81"));
  auto ended = LedgerLines(record).start(0).end(20).lines();
  EXPECT_TRUE(mentions(replay_ledger(ended, record, SavedState{30, 120}).problems, "newest checkpoint is of step 30"));
}

TEST(Ledger, TheNewestCheckpointIsOfTheSameData) {
  DataRecord record = one_dataset(30);
  auto lines = LedgerLines(record).start(0).end(20).lines();
  EXPECT_TRUE(replay_ledger(lines, record, SavedState{20, 80, order_checksum(record)}).problems.empty());
  auto problems = replay_ledger(lines, record, SavedState{20, 80, order_checksum(one_dataset(31))}).problems;
  EXPECT_TRUE(mentions(problems, "another run's"));
}

// What is left of it fits together.
TEST(Ledger, TheNewestCheckpointWasSavedBehindALineOfIt) {
  DataRecord record = one_dataset(30);
  std::vector<LedgerLine> lines = LedgerLines(record).start(0).checkpoint(10).checkpoint(20).checkpoint(30).lines();
  SavedState saved{30, 120, order_checksum(record), lines[2].chain};
  for (size_t left = 4; left > 0; --left) {
    lines.resize(left);
    EXPECT_EQ(mentions(replay_ledger(lines, record, saved).problems, "lines were removed"), left < 3) << left;
  }
}

TEST(Ledger, FollowsAChangeOfTheBatch) {
  DataRecord record = mixture();
  LedgerLines lines(record);
  lines.start(0).checkpoint(100).end(150).change_batch(150, 24).start(150).checkpoint(400);
  Ledger ledger = replay_ledger(lines.lines(), record);
  EXPECT_TRUE(ledger.problems.empty()) << ledger.problems.at(0);
  EXPECT_EQ(ledger.samples(), 600 + 250 * 24);
  EXPECT_TRUE(is_proven(lines.lines(), record));
}

TEST(Ledger, AnEmptyOne) {
  DataRecord record = one_dataset(30);
  EXPECT_EQ(replay_ledger({}, record).samples(), 0);
  DatasetUse use = count_uses({}, record)[0];
  EXPECT_EQ(use.problem, "");
  EXPECT_EQ(use.most, 0);
  EXPECT_EQ(use.at_least, 30);
  EXPECT_EQ(use.at_most, 30);
  EXPECT_TRUE(mentions(replay_ledger({}, record, SavedState{3, 12}).problems, "ledger.jsonl has no line"));
}

// There is nothing to count in any of them.
TEST(Ledger, AnEmptyOneOfVeryMuchData) {
  int passes = 0;
  DataRecord record = one_dataset(int64_t(1) << 42);
  EXPECT_EQ(count_uses({}, record, {.progress = [&](int64_t, int64_t) { ++passes; }})[0].at_least, int64_t(1) << 42);
  EXPECT_EQ(passes, 0);
}

// A pass for each part of them would take hours.
TEST(Ledger, AFewSamplesOfVeryMuchData) {
  DataRecord record = one_dataset(int64_t(1) << 42);
  int64_t total = 0;
  auto progress = [&](int64_t, int64_t samples) { total = samples; };
  DatasetUse use = count_uses(replay_ledger(LedgerLines(record).start(0).end(20).lines(), record), record,
                              {.progress = progress})[0];
  EXPECT_EQ(use.problem, "");
  EXPECT_EQ(use.at_most, 80);
  EXPECT_EQ(use.at_least, (int64_t(1) << 42) - 80);
  EXPECT_EQ(total, 80);
}

TEST(Ledger, CountsNoMoreThanItIsAskedTo) {
  DataRecord record = one_dataset(30);
  Ledger ledger = replay_ledger(LedgerLines(record).start(0).end(20).lines(), record);  // 80 samples
  EXPECT_EQ(count_uses(ledger, record, {.most_counted = 80})[0].problem, "");
  int calls = 0;
  auto progress = [&](int64_t, int64_t) { ++calls; };
  expect_user_error([&] { count_uses(ledger, record, {.most_counted = 79, .progress = progress}); },
                    {"[ledger] expected at most 79 samples to count, got 80 in 1 passes over 30 windows"});
  expect_user_error(
      [&] { count_uses(ledger, record, {.most_counted = 80, .windows_per_pass = 16, .progress = progress}); },
      {"got 80 in 2 passes"});
  EXPECT_EQ(calls, 0);
  // A product of both has no 64 bits.
  record = one_dataset(int64_t(1) << 42);
  LedgerLines most(record, int64_t(1) << 22);
  expect_user_error(
      [&] { count_uses(replay_ledger(most.start(0).end((int64_t(1) << 38) - 1).lines(), record), record); },
      {"[ledger] expected at most 8589934592 samples to count"});
}

TEST(Ledger, FilesHoldTheWindowsOfTheRecord) {
  TemporaryFolder folder;
  DataRecord record = one_dataset(100);  // of 16 tokens
  DatasetRecord& dataset = record.datasets[0];
  std::string path = (folder / "file").string();
  auto problem = [&](const char* kind, int64_t windows, int64_t bytes) {
    dataset.kind = kind, dataset.share.windows = windows, dataset.files = {{path, bytes, ""}};
    std::vector<std::string> problems = windows_beyond_files(record);
    return problems.empty() ? "" : problems[0];
  };
  EXPECT_EQ(problem("prepared", 100, 3202), "");
  EXPECT_EQ(problem("prepared", 101, 3202), "web: data.json has 101 windows of it, but its files hold at most 100");
  EXPECT_EQ(problem("tokens", 100, 20), "") << "compressed";
  EXPECT_NE(problem("tokens", 100'000, 20), "");
  dataset.window_bytes = 50;
  EXPECT_EQ(problem("text", 100, 5000), "");
  EXPECT_NE(problem("text", 100, 4999), "");
  EXPECT_NE(problem("text", int64_t(1) << 42, 4999), "");
  write_file_quickly(path, std::string(320, 'x'));
  EXPECT_NE(problem("prepared", 100, 3202), "") << "the file that is there is smaller";
  EXPECT_EQ(problem("prepared", 10, 3202), "");
}

// Whatever is done to the lines of a run with a crash in it must show.
TEST(LedgerBroken, ALineIsMissingOrThereTwice) {
  DataRecord record = one_dataset(30);
  auto good = LedgerLines(record).start(0).checkpoint(10).start(10, 14).checkpoint(20).end(25).lines();
  ASSERT_TRUE(is_proven(good, record));
  for (size_t i = 0; i + 1 < good.size(); ++i) {
    auto lines = good;
    lines.erase(lines.begin() + int64_t(i));
    EXPECT_TRUE(mentions(replay_ledger(lines, record).problems, "does not follow from the line before")) << i;
    lines = good;
    lines.insert(lines.begin() + int64_t(i), good[i]);
    EXPECT_FALSE(is_proven(lines, record)) << i;
  }
  // The last line cannot be missed by the lines themselves, but the checkpoint that it tells of is.
  auto ended = LedgerLines(record).start(0).end(10).start(10).end(25).lines();
  ended.resize(2);
  EXPECT_FALSE(replay_ledger(ended, record, SavedState{25, 100}).problems.empty());
}

TEST(LedgerBroken, AFieldIsChanged) {
  DataRecord record = one_dataset(30);
  auto good = LedgerLines(record).start(0).checkpoint(10).start(10, 14).checkpoint(20).end(25).lines();
  for (size_t i = 0; i < good.size(); ++i) {
    auto expect_found = [&](auto change) {
      auto lines = good;
      change(lines[i]);
      EXPECT_FALSE(replay_ledger(lines, record).problems.empty()) << i;
    };
    expect_found([](LedgerLine& line) { ++line.step; });
    expect_found([](LedgerLine& line) { line.sample -= 4; });
    expect_found([](LedgerLine& line) { line.samples_per_step = 8; });
    expect_found([](LedgerLine& line) { line.event = LedgerLine::Event((int(line.event) + 1) % 3); });
    expect_found([](LedgerLine& line) { line.order = "xxh64:0000000000000000"; });
  }
}

// As a trainer with a mistake would write them: the chain is right, the samples are not.
TEST(LedgerBroken, AStepIsRepeatedOrSkipped) {
  DataRecord record = one_dataset(30);
  for (int64_t shift : {-4, 4}) {
    auto lines = LedgerLines(record).start(0).end(10).start(10).end(25).lines();
    for (size_t i = 2; i < 4; ++i) lines[i].sample += shift;
    LedgerLines::chain_again(lines);
    Ledger ledger = replay_ledger(lines, record);
    EXPECT_TRUE(mentions(ledger.problems, "ledger.jsonl:3 goes on after step 10 with sample")) << shift;
    EXPECT_NE(count_uses(ledger, record)[0].problem, "") << shift;
  }
}

TEST(LedgerBroken, TheSeedOrAFileChanged) {
  DataRecord record = one_dataset(30);
  auto lines = LedgerLines(record).start(0).end(10).lines();
  ++record.seed;
  EXPECT_TRUE(mentions(replay_ledger(lines, record).problems, "data of another order"));
  --record.seed;
  record.datasets[0].files.push_back({"web.bin", 1, "xxh64:1"});
  EXPECT_TRUE(mentions(replay_ledger(lines, record).problems, "data of another order"));
}

TEST(LedgerBroken, TheBeginningIsMissing) {
  DataRecord record = one_dataset(30);
  EXPECT_TRUE(mentions(replay_ledger(LedgerLines(record).start(10).lines(), record).problems, "not written down"));
  EXPECT_TRUE(mentions(replay_ledger(LedgerLines(record).checkpoint(10).lines(), record).problems, "start is not"));
}

TEST(CountUses, TheSameInPassesAndByHand) {
  DataRecord record = mixture();
  Ledger ledger = replay_ledger(LedgerLines(record, 7).start(0).end(600).lines(), record);
  std::map<std::pair<int64_t, int64_t>, int64_t> slow;
  SampleOrder order = record.order();
  for (int64_t sample = 0; sample < 4200; ++sample) {
    SamplePlace place = order.at(sample);
    ++slow[{place.dataset, place.window}];
  }
  for (int64_t windows_per_pass : {299, 1000, 5000}) {
    int64_t done = 0, total = 0;
    std::vector<DatasetUse> uses = count_uses(
        ledger, record,
        {.windows_per_pass = windows_per_pass, .progress = [&](int64_t d, int64_t t) { done = d, total = t; }});
    EXPECT_EQ(done, total);
    EXPECT_EQ(total, (1300 + windows_per_pass - 1) / windows_per_pass * 4200);
    for (int64_t dataset = 0; dataset < 2; ++dataset) {
      DatasetUse expected{.least = 1 << 30};
      for (int64_t window = 0; window < record.datasets[size_t(dataset)].share.windows; ++window) {
        int64_t count = slow[{dataset, window}];
        expected.samples += count;
        expected.least = std::min(expected.least, count);
        expected.most = std::max(expected.most, count);
      }
      const DatasetUse& use = uses[size_t(dataset)];
      EXPECT_EQ(use.problem, "");
      EXPECT_EQ(use.samples, expected.samples);
      EXPECT_EQ(use.least, expected.least);
      EXPECT_EQ(use.most, expected.most);
      EXPECT_EQ(use.at_least + use.at_most, use.windows);
    }
  }
}

Ledger with_a_repeated_step() {
  Ledger ledger;
  ledger.segments = {{.first_step = 0, .end_step = 3, .first_sample = 0, .samples_per_step = 10},
                     {.first_step = 3, .end_step = 4, .first_sample = 20, .samples_per_step = 10},
                     {.first_step = 4, .end_step = 5, .first_sample = 40, .samples_per_step = 10}};
  return ledger;
}

TEST(CountUses, SaysHowUsesDiffer) {
  // 50 samples, but 20 to 29 are among them twice.
  DatasetUse use = count_uses(with_a_repeated_step(), one_dataset(30))[0];
  EXPECT_NE(use.problem.find("windows were used 1 to 3 times"), std::string::npos) << use.problem;
}

// Used windows alone are counted, in some passes, and it comes to the same.
TEST(CountUses, TheSameOfUsedWindowsAlone) {
  DataRecord record = mixture();
  Ledger ledger = replay_ledger(LedgerLines(record).start(0).end(30).lines(), record);  // 120 samples
  for (const Ledger& of : {ledger, with_a_repeated_step()}) {
    std::vector<DatasetUse> all = count_uses(of, record);
    int64_t total = 0;
    std::vector<DatasetUse> used =
        count_uses(of, record, {.windows_per_pass = 200, .progress = [&](int64_t, int64_t t) { total = t; }});
    EXPECT_EQ(total, (of.samples() + 24) / 25 * of.samples()) << "not seven passes over all windows";
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(used[i].samples, all[i].samples);
      EXPECT_EQ(used[i].least, all[i].least);
      EXPECT_EQ(used[i].most, all[i].most);
      EXPECT_EQ(used[i].at_least, all[i].at_least);
      EXPECT_EQ(used[i].at_most, all[i].at_most);
      EXPECT_EQ(used[i].problem, all[i].problem);
    }
  }
}

}  // namespace
}  // namespace tokamak
