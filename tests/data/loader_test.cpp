#include "data/loader.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/data/small_shards.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

std::vector<int32_t> counting(int32_t from, int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

/// 0..90 in three shards: with T = 6, 15 windows that begin at multiples of 6.
class LoaderTest : public testing::Test {
 protected:
  Loader loader(LoaderOptions options) { return Loader(data_.path(), data_.index(), data_.index().train, options); }

  SmallShards data_{{counting(0, 40), counting(40, 1), counting(41, 50)}, {counting(0, 4)}};
};

TEST_F(LoaderTest, TargetsAreTheNextTokens) {
  Loader loader = this->loader({.batch = 4, .context = 6, .seed = 1});
  EXPECT_EQ(loader.windows(), 15);
  for (int step = 0; step < 10; ++step) {
    Batch batch = loader.next();
    ASSERT_EQ(batch.tokens.size(), 24u);
    ASSERT_EQ(batch.targets.size(), 24u);
    for (size_t i = 0; i < 24; ++i) {
      EXPECT_EQ(batch.targets[i], batch.tokens[i] + 1);
      EXPECT_EQ(batch.tokens[i] % 6, int32_t(i % 6));
    }
  }
}

TEST_F(LoaderTest, EachEpochHasEachWindowOnceInAnOrderOfItsOwn) {
  Loader loader = this->loader({.batch = 5, .context = 6, .seed = 1});
  std::vector<std::vector<int32_t>> epochs;
  for (int epoch = 0; epoch < 4; ++epoch) {
    auto& firsts = epochs.emplace_back();
    for (int step = 0; step < 3; ++step) {
      Batch batch = loader.next();
      for (size_t b = 0; b < 5; ++b) firsts.push_back(batch.tokens[6 * b]);
    }
    std::vector<int32_t> sorted = firsts;
    std::sort(sorted.begin(), sorted.end());
    for (int32_t window = 0; window < 15; ++window) EXPECT_EQ(sorted[size_t(window)], 6 * window);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST_F(LoaderTest, BatchSizeDoesNotChangeTheOrder) {
  Loader by_one = loader({.batch = 1, .context = 6, .seed = 9});
  Loader by_seven = loader({.batch = 7, .context = 6, .seed = 9});
  for (int step = 0; step < 6; ++step) {
    Batch seven = by_seven.next();
    for (size_t b = 0; b < 7; ++b) EXPECT_EQ(by_one.next().tokens[0], seven.tokens[6 * b]);
  }
}

TEST_F(LoaderTest, SequentialModeKeepsTheOrderOfTheData) {
  Loader loader = this->loader({.batch = 4, .context = 6, .sequential = true});
  for (int32_t sample = 0; sample < 32; sample += 4) {
    Batch batch = loader.next();
    EXPECT_EQ(batch.first_sample, sample);
    for (int32_t b = 0; b < 4; ++b) EXPECT_EQ(batch.tokens[size_t(6 * b)], (sample + b) % 15 * 6);
  }
}

TEST_F(LoaderTest, SeekGoesOnAsIfNothingHadHappened) {
  Loader straight = loader({.batch = 2, .context = 6, .seed = 3});
  std::map<int64_t, Batch> batches;
  for (int step = 0; step < 40; ++step) {
    int64_t position = straight.position();
    batches[position] = straight.next();
    EXPECT_EQ(batches[position].first_sample, position);
  }
  Loader jumping = loader({.batch = 2, .context = 6, .seed = 3, .prefetch = 4});
  for (int64_t sample : {20, 4, 4, 76, 0, 38, 36}) {
    jumping.seek(sample);
    for (int step = 0; step < 2; ++step) {
      int64_t position = jumping.position();
      Batch batch = jumping.next();
      EXPECT_EQ(batch.first_sample, position);
      EXPECT_EQ(batch.tokens, batches[position].tokens);
      EXPECT_EQ(batch.targets, batches[position].targets);
    }
  }
}

TEST_F(LoaderTest, PrefetchingDoesNotChangeTheBatches) {
  Loader plain = loader({.batch = 3, .context = 6, .seed = 5, .prefetch = 0});
  Loader ahead = loader({.batch = 3, .context = 6, .seed = 5, .prefetch = 8});
  Batch one, two;
  for (int step = 0; step < 200; ++step) {
    plain.next(one);
    ahead.next(two);
    ASSERT_EQ(one.tokens, two.tokens);
    ASSERT_EQ(one.first_sample, two.first_sample);
  }
}

TEST_F(LoaderTest, KeepsDocumentsApartWhenAsked) {
  EXPECT_TRUE(loader({.batch = 2, .context = 6, .sequential = true}).next().documents.empty());
  Batch batch = loader({.batch = 2, .context = 6, .sequential = true, .end_of_text = 8}).next();
  EXPECT_EQ(batch.tokens, counting(0, 12));
  EXPECT_EQ(batch.documents, (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3}));
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8, -1, 10, 11, 12}));
}

TEST_F(LoaderTest, EndsAtAnyMoment) {
  for (int batches = 0; batches < 20; ++batches) {
    Loader loader = this->loader({.batch = 1, .context = 6, .prefetch = 3});
    for (int i = 0; i < batches % 4; ++i) loader.next();
    Loader moved = std::move(loader);
    moved.next();
  }
}

TEST_F(LoaderTest, SaysHowManyTokensAreMissing) {
  auto val = [&](int64_t context) {
    return Loader(data_.path(), data_.index(), data_.index().val, {.batch = 1, .context = context});
  };
  expect_user_error([&] { val(4); }, {"at least 5 tokens", "got 4", "lower model.context to 3"});
  EXPECT_EQ(val(3).windows(), 1);
}

TEST_F(LoaderTest, RefusesAVocabularyTooSmallForTheData) {
  expect_user_error([&] { loader({.batch = 1, .context = 6, .vocab_size = 99}); },
                    {"vocabulary is too small for the data", "at least 100", "got 99", "model.vocab"});
  EXPECT_NO_THROW(loader({.batch = 1, .context = 6, .vocab_size = 100}));
  ShardIndex index = data_.index();
  index.vocab_size = 50;  // an index that says less than its shards hold
  expect_user_error([&] { Loader(data_.path(), index, index.train, {.context = 6, .vocab_size = 60}); },
                    {"at least 91", "got 60"});
}

// What the thread meets must come out of next().
TEST_F(LoaderTest, FindsIdsThatTheIndexDoesNotKnowOf) {
  ShardIndex index = data_.index();
  index.vocab_size = 50;
  for (ShardInfo& shard : index.train.shards) shard.max_token = 49;
  for (int prefetch : {0, 2}) {
    Loader loader(data_.path(), index, index.train, {.context = 90, .vocab_size = 50, .prefetch = prefetch});
    expect_user_error([&] { loader.next(); }, {"ids below 50", "got 90", "damaged"});
  }
}

}  // namespace
}  // namespace tokamak
