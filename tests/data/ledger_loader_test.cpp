// The ledger against its slow twin: a real loader that is stopped, sent back and given other batches, whose tokens tell
// which windows it gave out.
#include <gtest/gtest.h>

#include <numeric>

#include "data/corpus.h"
#include "data/ledger.h"
#include "data/loader.h"
#include "data/token_dataset.h"
#include "tests/data/ledger_lines.h"
#include "tests/data/small_shards.h"

namespace tokamak {
namespace {

constexpr int64_t kContext = 4;

/// Shards whose tokens count up, so that a window's first token tells its number.
std::vector<std::vector<int32_t>> counting_shards(int32_t first, std::vector<int64_t> sizes) {
  std::vector<std::vector<int32_t>> shards;
  for (int64_t size : sizes) {
    auto& shard = shards.emplace_back(static_cast<size_t>(size));
    std::iota(shard.begin(), shard.end(), first);
    first += int32_t(size);
  }
  return shards;
}

class LedgerTwin : public testing::Test {
 protected:
  static constexpr int32_t kBooks = 1000;  // the first token of the second dataset

  LedgerTwin()
      : web_(counting_shards(0, {150, 251}), {}, 2000), books_(counting_shards(kBooks, {81}), {}, 2000),
        corpus_(std::make_shared<const Corpus>(Corpus::Datasets{open(web_), open(books_)}, std::vector<double>{3, 1},
                                               kContext, 7)) {}

  static std::shared_ptr<const Dataset> open(const SmallShards& data) {
    return open_prepared(data.path(), data.index(), data.index().train, kContext);
  }

  /// Trains steps [first, end) from sample `sample` on; gives the windows that were in them, [dataset][window].
  void use(int64_t sample, int64_t steps, int64_t batch, std::vector<std::vector<int64_t>>& uses) {
    Loader loader(corpus_, {.batch = batch, .workers = 2});
    loader.seek(sample);
    for (int64_t step = 0; step < steps; ++step) {
      Batch made = loader.next();
      for (int64_t b = 0; b < batch; ++b) {
        int32_t token = made.tokens[size_t(b * kContext)];
        size_t dataset = token >= kBooks ? 1 : 0;
        ++uses[dataset][size_t((token - (dataset == 1 ? kBooks : 0)) / kContext)];
      }
    }
  }

  SmallShards web_, books_;  // 100 and 20 windows
  std::shared_ptr<const Corpus> corpus_;
};

TEST_F(LedgerTwin, CountsWhatTheLoaderGave) {
  DataRecord record = corpus_->record();
  // 30 steps of 5, of which 20 are saved; killed; on from there; then steps of 8.
  LedgerLines lines(record, 5);
  lines.start(0).checkpoint(20).start(20, 30).end(60).change_batch(60, 8).start(60).checkpoint(100);
  std::vector<std::vector<int64_t>> uses = {std::vector<int64_t>(100), std::vector<int64_t>(20)};
  use(0, 20, 5, uses);
  use(20 * 5, 40, 5, uses);
  use(60 * 5, 40, 8, uses);

  Ledger ledger = replay_ledger(lines.lines(), record);
  ASSERT_TRUE(ledger.problems.empty()) << ledger.problems.at(0);
  std::vector<DatasetUse> counted = count_uses(ledger, record);
  ASSERT_EQ(counted.size(), 2u);
  for (size_t dataset = 0; dataset < 2; ++dataset) {
    const std::vector<int64_t>& expected = uses[dataset];
    EXPECT_EQ(counted[dataset].problem, "");
    EXPECT_EQ(counted[dataset].windows, int64_t(expected.size()));
    EXPECT_EQ(counted[dataset].samples, std::accumulate(expected.begin(), expected.end(), int64_t(0)));
    EXPECT_EQ(counted[dataset].least, *std::min_element(expected.begin(), expected.end()));
    EXPECT_EQ(counted[dataset].most, *std::max_element(expected.begin(), expected.end()));
    EXPECT_EQ(counted[dataset].at_least, std::count(expected.begin(), expected.end(), counted[dataset].least));
    EXPECT_EQ(counted[dataset].at_most, std::count(expected.begin(), expected.end(), counted[dataset].most));
  }
}

TEST_F(LedgerTwin, ALoaderThatRepeatsAStepIsFound) {
  DataRecord record = corpus_->record();
  LedgerLines lines(record, 5);
  lines.start(0).end(20);
  lines.add({.event = LedgerLine::Event::kStart, .step = 20, .sample = 95});  // and not 100
  lines.add({.event = LedgerLine::Event::kEnd, .step = 40, .sample = 195});
  Ledger ledger = replay_ledger(lines.lines(), record);
  EXPECT_FALSE(ledger.problems.empty());
  std::vector<DatasetUse> uses = count_uses(ledger, record);
  EXPECT_NE(uses[0].problem + uses[1].problem, "");
}

TEST(CompareFiles, FindsWhatChanged) {
  SmallShards data({{0, 1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11}}, {});
  Corpus corpus({open_prepared(data.path(), data.index(), data.index().train, kContext)}, {1}, kContext, 7);
  DataRecord record = corpus.record();
  std::vector<FileState> states = compare_files(record);
  ASSERT_EQ(states.size(), 2u);
  for (const FileState& state : states) EXPECT_TRUE(state.found && state.problem.empty()) << state.problem;

  std::string bytes = read_file(record.datasets[0].files[0].path);
  bytes[1030] ^= 1;
  write_file_atomic(record.datasets[0].files[0].path, bytes);
  std::filesystem::remove(record.datasets[0].files[1].path);
  states = compare_files(record);
  EXPECT_NE(states[0].problem.find("has changed since the run used it"), std::string::npos) << states[0].problem;
  EXPECT_FALSE(states[1].found);
  EXPECT_EQ(states[1].problem, "");
}

}  // namespace
}  // namespace tokamak
