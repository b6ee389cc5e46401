#include "data/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "data/document_starts.h"
#include "data/marked_tokens.h"
#include "tests/data/small_corpus.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

/// 91 tokens: with T = 6, 15 windows that begin at multiples of 6.
std::shared_ptr<const Corpus> small_corpus(uint64_t seed = 1) { return counting_corpus({91}, {1}, 6, seed); }

/// 3 to 7, of which 4 and 5 are not learned.
class MarkedTokens : public CountingTokens {
 public:
  MarkedTokens() : CountingTokens(3, 5) {}
  bool is_marked() const override { return true; }
  void read(int64_t begin, std::span<int32_t> out) const override {
    CountingTokens::read(begin, out);
    for (int32_t& token : out)
      if (token == 4 || token == 5) token = with_mark(token);
  }
};

/// The slow way: each sample alone, by its number.
std::vector<int32_t> sample_tokens(const Corpus& corpus, int64_t sample) {
  SampleOrder order = corpus.order();
  SamplePlace place = order.at(sample);
  std::vector<int32_t> tokens(size_t(corpus.context()) + 1);
  corpus.datasets()[size_t(place.dataset)]->reader()->read(place.window, tokens);
  return tokens;
}

void expect_samples(const Corpus& corpus, const Batch& batch, int64_t first, int64_t count) {
  ASSERT_EQ(batch.first_sample, first);
  ASSERT_EQ(int64_t(batch.tokens.size()), count * corpus.context());
  for (int64_t b = 0; b < count; ++b) {
    std::vector<int32_t> expected = sample_tokens(corpus, first + b);
    for (int64_t t = 0; t < corpus.context(); ++t) {
      size_t at = size_t(b * corpus.context() + t);
      ASSERT_EQ(batch.tokens[at], expected[size_t(t)]) << "sample " << first + b;
      ASSERT_EQ(batch.targets[at], expected[size_t(t) + 1]) << "sample " << first + b;
    }
  }
}

TEST(Loader, TargetsAreTheNextTokens) {
  Loader loader(small_corpus(), {.batch = 4});
  EXPECT_EQ(loader.corpus().windows(), 15);
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

TEST(Loader, EachEpochHasEachWindowOnceInAnOrderOfItsOwn) {
  Loader loader(small_corpus(), {.batch = 5});
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

TEST(Loader, SequentialModeKeepsTheOrderOfTheData) {
  auto corpus = std::make_shared<const Corpus>(small_corpus()->sequential());
  Loader loader(corpus, {.batch = 4});
  for (int32_t sample = 0; sample < 32; sample += 4) {
    Batch batch = loader.next();
    EXPECT_EQ(batch.first_sample, sample);
    for (int32_t b = 0; b < 4; ++b) EXPECT_EQ(batch.tokens[size_t(6 * b)], (sample + b) % 15 * 6);
  }
}

// Whatever reads it, it is the same sequence: workers, batch size, processes, and how far they read ahead.
TEST(Loader, TheUnionInOrderIsOneSequence) {
  auto corpus = counting_corpus({9001, 500, 70'000}, {0.5, 0.2, 0.3}, 8, 3);
  for (int64_t workers : {0, 1, 2, 5}) {
    for (int64_t world : {1, 2, 3, 8}) {
      for (int64_t batch : {1, 4, 7}) {
        std::vector<Loader> loaders;
        for (int64_t rank = 0; rank < world; ++rank)
          loaders.emplace_back(
              corpus,
              LoaderOptions{.batch = batch, .rank = rank, .world = world, .workers = workers, .prefetch = 1 + rank});
        for (int64_t sample = 0; sample < 300; sample += batch) {
          Loader& loader = loaders[size_t(sample / batch % world)];
          Batch made = loader.next();
          expect_samples(*corpus, made, sample, batch);
          ASSERT_EQ(loader.position() % (batch * world), 0);
        }
      }
    }
  }
}

// A run on 3 processes goes on with 2 of other batches, then with 1: no sample is left out or comes twice.
TEST(Loader, ProcessesAndBatchesMayChangeAtAnyPosition) {
  auto corpus = counting_corpus({9001, 500}, {0.9, 0.1}, 8);
  std::map<int64_t, int> used;
  int64_t position = 0;
  struct {
    int64_t world, batch, steps;
  } segments[] = {{3, 5, 7}, {2, 8, 4}, {1, 1, 20}, {4, 3, 5}};
  for (auto [world, batch, steps] : segments) {
    int64_t begin = position;
    for (int64_t rank = 0; rank < world; ++rank) {
      Loader loader(corpus, {.batch = batch, .rank = rank, .world = world, .workers = 2});
      loader.seek(begin);
      for (int64_t step = 0; step < steps; ++step) {
        Batch made = loader.next();
        expect_samples(*corpus, made, made.first_sample, batch);
        for (int64_t b = 0; b < batch; ++b) ++used[made.first_sample + b];
      }
      position = loader.position();
    }
  }
  ASSERT_EQ(int64_t(used.size()), position);
  for (auto [sample, count] : used) ASSERT_EQ(count, 1) << sample;
  EXPECT_EQ(used.rbegin()->first, position - 1);
}

TEST(Loader, SeekGoesOnAsIfNothingHadHappened) {
  auto corpus = small_corpus(3);
  for (int64_t workers : {0, 1, 3}) {
    Loader loader(corpus, {.batch = 2, .workers = workers});
    for (int64_t sample : {20, 4, 4, 76, 0, 38, 36}) {
      loader.seek(sample);
      for (int step = 0; step < 2; ++step) {
        ASSERT_EQ(loader.position(), sample + 2 * step);
        expect_samples(*corpus, loader.next(), sample + 2 * step, 2);
      }
    }
  }
}

/// The first read goes on when it is told to; those after it take a while.
class HeldTokens : public CountingTokens {
 public:
  using CountingTokens::CountingTokens;
  void read(int64_t begin, std::span<int32_t> out) const override {
    bool is_first = !begun.test_and_set();
    begun.notify_all();
    if (is_first)
      may_go_on.wait(false);
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CountingTokens::read(begin, out);
  }
  mutable std::atomic_flag begun, may_go_on;
};

TEST(Loader, ABatchThatWasBegunBeforeASeekIsNotKept) {
  auto tokens = std::make_shared<HeldTokens>(0, 91);
  auto corpus = std::make_shared<const Corpus>(Corpus::Datasets{make_token_dataset("held", tokens, 6)},
                                               std::vector<double>{1}, 6, 1);
  Loader loader(corpus, {.batch = 2, .workers = 1, .prefetch = 1});
  tokens->begun.wait(false);
  loader.seek(20);
  tokens->may_go_on.test_and_set();
  tokens->may_go_on.notify_all();
  expect_samples(*corpus, loader.next(), 20, 2);
}

/// Counts reads; every third window takes a while, so that threads overtake each other.
class SlowTokens : public CountingTokens {
 public:
  using CountingTokens::CountingTokens;
  void read(int64_t begin, std::span<int32_t> out) const override {
    ++reads;
    if (begin / 6 % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CountingTokens::read(begin, out);
  }
  mutable std::atomic<int64_t> reads = 0;
};

TEST(Loader, KeepsTheOrderWhenThreadsOvertakeEachOtherAndReadsAheadOnlySoFar) {
  auto tokens = std::make_shared<SlowTokens>(0, 6001);
  auto corpus = std::make_shared<const Corpus>(Corpus::Datasets{make_token_dataset("slow", tokens, 6)},
                                               std::vector<double>{1}, 6, 1);
  SampleOrder order = corpus->order();
  Loader loader(corpus, {.batch = 1, .workers = 4, .prefetch = 5});
  for (int64_t sample = 0; sample < 100; ++sample) {
    Batch batch = loader.next();
    ASSERT_EQ(batch.first_sample, sample);
    ASSERT_EQ(batch.tokens[0], order.at(sample).window * 6);
    ASSERT_LE(tokens->reads, sample + 1 + 5);
  }
}

TEST(Loader, KeepsDocumentsApartWhenAsked) {
  auto corpus = std::make_shared<const Corpus>(small_corpus()->sequential());
  EXPECT_TRUE(Loader(corpus, {.batch = 2}).next().documents.empty());
  Batch batch = Loader(corpus, {.batch = 2, .end_of_text = 8}).next();
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8, kNoTarget, 10, 11, 12}));
  EXPECT_EQ(batch.documents, (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3}));
}

TEST(Loader, TellsAWatcherOfEachBatchThatAThreadMakes) {
  std::mutex mutex;
  std::vector<MadeBatch> made;  // outlives the loader
  Loader loader(small_corpus(), {.batch = 2, .workers = 2, .prefetch = 2});
  loader.watch([&](const MadeBatch& batch) {
    std::lock_guard lock(mutex);
    made.push_back(batch);
  });
  for (int i = 0; i < 10; ++i) loader.next();
  loader.watch(nullptr);
  std::lock_guard lock(mutex);
  EXPECT_GE(made.size(), 6u) << "those that were not made before";
  for (const MadeBatch& batch : made) {
    EXPECT_TRUE(batch.worker == 0 || batch.worker == 1);
    EXPECT_LE(batch.begin, batch.end);
  }
}

TEST(Loader, EndsAtAnyMoment) {
  for (int batches = 0; batches < 20; ++batches) {
    Loader loader(small_corpus(), {.batch = 1, .workers = batches % 3, .prefetch = 3});
    for (int i = 0; i < batches % 4; ++i) loader.next();
    Loader moved = std::move(loader);
    moved.next();
  }
}

// What a thread meets must come out of next(), at the batch that it belongs to and not before.
TEST(Loader, FindsIdsThatTheModelLacks) {
  auto corpus = std::make_shared<const Corpus>(small_corpus()->sequential());
  for (int64_t workers : {0, 1, 3}) {
    Loader loader(corpus, {.batch = 1, .vocab_size = 51, .workers = workers});
    for (int i = 0; i < 8; ++i) loader.next();
    for (int again = 0; again < 2; ++again)
      expect_user_error([&] { loader.next(); }, {"memory: token 54", "ids below 51", "got 54", "damaged"});
    loader.seek(3);
    EXPECT_EQ(loader.next().tokens[0], 18);
  }
}

TEST(Loader, TheFirstIdBeyondTheVocabularyIsRefused) {
  auto corpus = std::make_shared<const Corpus>(small_corpus()->sequential());
  EXPECT_EQ(Loader(corpus, {.vocab_size = 7}).next().targets.back(), 6);
  expect_user_error([&] { Loader(corpus, {.vocab_size = 6}).next(); }, {"memory: token 6", "ids below 6", "got 6"});
}

TEST(Loader, NegativeIdsAreRefused) {
  auto corpus = std::make_shared<const Corpus>(
      Corpus::Datasets{make_token_dataset("d", std::make_shared<CountingTokens>(-3, 50, "x.bin"), 6)},
      std::vector<double>{1}, 6, 1);
  Loader loader(std::make_shared<const Corpus>(corpus->sequential()), {.vocab_size = 1000});
  expect_user_error([&] { loader.next(); }, {"x.bin: token 2", "ids below 1000"});
}

// They are read as all others, without their mark.
TEST(Loader, TokensThatAreNotLearnedAreNoTargets) {
  auto corpus = std::make_shared<const Corpus>(
      Corpus::Datasets{make_token_dataset("memory", std::make_shared<MarkedTokens>(), 4)}, std::vector<double>{1}, 4,
      1);
  Batch batch = Loader(corpus, {.batch = 1}).next();
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{3, 4, 5, 6}));
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{kNoTarget, kNoTarget, 6, 7}));
}

}  // namespace
}  // namespace tokamak
