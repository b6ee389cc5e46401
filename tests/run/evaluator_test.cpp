#include "run/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/divide.h"
#include "base/file.h"
#include "compile/compiled_run.h"
#include "config/config.h"
#include "data/data_tokenizer.h"
#include "data/document_starts.h"
#include "data/tokenizer_files.h"
#include "tests/data/small_shards.h"
#include "tests/support/expect_error.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

constexpr double kLoss = 2.5;  // nats a token, whatever the batch

class EvaluatorTest : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());
    config_ = test::tiny_config(folder_.path());
    config_.model.vocab = 301;
    config_.data.path = {(folder_ / "text.txt").string()};
    config_.data.tokenizer = (folder_ / "data").string();
  }

  /// Of data.val_path.
  Evaluation evaluate(const std::string& val_path, int64_t windows = 1000) {
    config_.data.val_path = {val_path};
    auto tokenizer = load_data_tokenizer(config_.data);
    auto corpus = std::make_shared<const Corpus>(*open_validation_data(config_, tokenizer, true));
    return Evaluator(corpus, tokenizer.get(), resolve(config_, {}), windows).evaluate([](std::span<const Batch>) {
      return std::vector{kLoss};
    });
  }

  std::string shard(const char* split) const { return (folder_ / "data" / split).string() + "_000000.bin"; }

  /// Of the first `count` tokens of a shard, decoded.
  double tokens_per_byte(const std::string& path, size_t count) const {
    std::vector<int32_t> ids(count);
    open_tokens({path}, {})->read(0, ids);
    Tokenizer tokenizer = load_tokenizer(folder_ / "data");
    std::erase(ids, tokenizer.end_of_text());
    return double(count) / double(tokenizer.decode(ids).size());
  }

  TemporaryFolder folder_;
  RunConfig config_;
};

TEST_F(EvaluatorTest, FilesOfTokensAreCountedWithTheTokenizer) {
  Evaluation some = evaluate(shard("train"), 6);  // windows of 16 tokens
  EXPECT_EQ(some.unknown, "");
  EXPECT_DOUBLE_EQ(some.bits_per_byte, kLoss / std::log(2) * tokens_per_byte(shard("train"), 3 * 2 * 16));
  // The samples' own text, not an average.
  EXPECT_NE(some.bits_per_byte, evaluate(shard("train")).bits_per_byte);
}

TEST_F(EvaluatorTest, AgreesWithWhatThePreparedFolderTells) {
  Evaluation prepared = evaluate((folder_ / "data").string()), tokens = evaluate(shard("val"));
  EXPECT_GT(prepared.bits_per_byte, 0);
  EXPECT_NEAR(tokens.bits_per_byte, prepared.bits_per_byte, 0.1 * prepared.bits_per_byte);  // not of the last tokens
  Evaluation text = evaluate((folder_ / "text.txt").string()), train = evaluate(shard("train"));
  EXPECT_NEAR(text.bits_per_byte, train.bits_per_byte, 0.02 * train.bits_per_byte);
}

TEST_F(EvaluatorTest, MarkersAndHiddenTargetsDoNotMatter) {
  std::string path = (folder_ / "many.bin").string();
  std::vector<int32_t> ids(129);
  open_tokens({shard("train")}, {})->read(0, ids);
  for (size_t i = 0; i < ids.size(); i += 7) ids[i] = load_tokenizer(folder_ / "data").end_of_text();
  TokenShardWriter writer(path, int64_t(ids.size()), 2);
  writer.append(ids);
  writer.finish();
  writer.commit();
  Evaluation plain = evaluate(path);
  EXPECT_DOUBLE_EQ(plain.bits_per_byte, kLoss / std::log(2) * tokens_per_byte(path, 128));
  config_.data.mask_documents = true;
  Evaluation masked = evaluate(path);
  EXPECT_LT(masked.tokens, plain.tokens);
  EXPECT_DOUBLE_EQ(masked.bits_per_byte, plain.bits_per_byte);
}

TEST_F(EvaluatorTest, RefusesAPartInWhichNoTargetCounts) {
  config_.data.mask_documents = true;
  config_.data.end_of_text = 7;
  std::vector<int32_t> ids(40 * 16 + 1, 7);
  std::fill(ids.begin() + 20 * 16, ids.end(), 3);
  std::string late = (folder_ / "late.bin").string();
  TokenShardWriter writer(late, int64_t(ids.size()), 2);
  writer.append(ids);
  writer.finish();
  writer.commit();
  EXPECT_GT(evaluate(late).tokens, 0);
  expect_user_error([&] { evaluate(late, 20); }, {"late.bin", "first 20 windows", "got none", "take more"});
  EXPECT_GT(evaluate(late, 21).tokens, 0);
  config_.data.mask_documents = false;
  EXPECT_EQ(evaluate(late, 20).tokens, 20 * 16);
}

// Losses that tell what they were made of: the number of the window's first token.
TEST_F(EvaluatorTest, EveryWindowOnceWhateverTheBatch) {
  config_.data.val_path = {shard("val"), shard("train")};
  auto tokenizer = load_data_tokenizer(config_.data);
  auto corpus = std::make_shared<const Corpus>(*open_validation_data(config_, tokenizer));
  int64_t first_windows = corpus->datasets()[0]->windows(), windows = corpus->windows();
  size_t at_once = 0;  // batches, at most
  auto means = [&](std::span<const Batch> batches) {
    std::vector<double> losses;
    for (const Batch& batch : batches) {
      double sum = 0;
      int64_t count = 0;
      for (int32_t target : batch.targets)
        if (target >= 0) sum += target, ++count;
      losses.push_back(sum / double(count));
    }
    at_once = std::max(at_once, batches.size());
    return losses;
  };
  std::vector<Evaluation> all;
  for (int64_t batch : {1, 2, 3, 7, 64}) {
    config_.train.batch = batch;
    config_.train.total_batch = 4 * batch * config_.model.context;
    config_.mesh.pipe = batch == 2 ? 2 : 1;  // which takes several at once
    at_once = 0;
    all.push_back(Evaluator(corpus, tokenizer.get(), resolve(config_, {}), windows).evaluate(means));
    EXPECT_EQ(at_once, size_t(batches_at_once(resolve(config_, {}))));
    const Evaluation& one = all.back();
    EXPECT_EQ(one.tokens, windows * 16) << batch;
    EXPECT_EQ(one.windows, windows);
    EXPECT_NEAR(one.loss, all[0].loss, 1e-9 * all[0].loss) << batch;
    EXPECT_NEAR(one.bits_per_byte, all[0].bits_per_byte, 1e-9 * all[0].bits_per_byte) << batch;
    ASSERT_EQ(one.entries.size(), 2u);
    EXPECT_EQ(one.entries[0].tokens, first_windows * 16);
    EXPECT_EQ(one.entries[1].path, shard("train"));
    EXPECT_NE(one.entries[0].loss, one.entries[1].loss);
    double of_entries = 0;
    for (const EntryLoss& entry : one.entries) of_entries += entry.loss * double(entry.tokens) / double(one.tokens);
    EXPECT_NEAR(one.loss, of_entries, 1e-9 * of_entries) << "weighted by their targets";
  }
  Evaluation some = Evaluator(corpus, tokenizer.get(), resolve(config_, {}), windows / 2).evaluate(means);
  EXPECT_NEAR(double(some.windows), double(windows) / 2, 2);
  EXPECT_NEAR(double(some.entries[0].tokens), double(first_windows) / 2 * 16, 16);
}

// A mesh gives a loss for each rank's part of a batch; of a part, or a data set, some targets may be hidden.
TEST_F(EvaluatorTest, PartsCountByTheirTargets) {
  std::vector<int32_t> ids(6 * 16 + 1, 5);
  int32_t marker = load_tokenizer(folder_ / "data").end_of_text();
  std::fill_n(ids.begin() + 16, 12, marker);  // most of the second window
  SmallShards data({}, {ids}, 301), plain({}, {std::vector<int32_t>(ids.size(), 5)}, 301);
  config_.data.val_path = {(data.path() / "val_000000.bin").string(), (plain.path() / "val_000000.bin").string()};
  config_.data.mask_documents = true;
  config_.train.batch = 2;
  auto tokenizer = load_data_tokenizer(config_.data);
  auto corpus = std::make_shared<const Corpus>(*open_validation_data(config_, tokenizer, true));
  double sum = 0;
  int64_t count = 0;
  auto by_part = [&](std::span<const Batch> batches) {
    std::vector<double> losses;
    for (const Batch& batch : batches)
      for (int64_t part : {0, 1}) {
        int64_t targets = count_targets(part_of(batch.targets, part, 2));
        losses.push_back(part == 0 ? 1 : 5);
        sum += losses.back() * double(targets);
        count += targets;
      }
    return losses;
  };
  Evaluation out = Evaluator(corpus, tokenizer.get(), resolve(config_, {}), 12).evaluate(by_part);
  EXPECT_EQ(out.tokens, count);
  EXPECT_LT(count, 12 * 16 - 10) << "some are hidden";
  EXPECT_NE(out.entries[0].tokens, out.entries[1].tokens);
  EXPECT_DOUBLE_EQ(out.loss, sum / double(count));
}

TEST_F(EvaluatorTest, SharesOfWindowsAreRoundedUp) {
  config_.data.val_path = {shard("val"), shard("train")};
  auto tokenizer = load_data_tokenizer(config_.data);
  auto corpus = std::make_shared<const Corpus>(*open_validation_data(config_, tokenizer));
  int64_t all = corpus->windows(), first = corpus->datasets()[0]->windows(), second = all - first;
  for (int64_t windows : {int64_t(1), int64_t(3), all / 3, all - 1}) {
    Evaluation out =
        Evaluator(corpus, tokenizer.get(), resolve(config_, {}), windows).evaluate([](std::span<const Batch>) {
          return std::vector{kLoss};
        });
    EXPECT_EQ(out.entries[0].tokens, 16 * ceil_div(windows * first, all)) << windows << " of " << all;
    EXPECT_EQ(out.entries[1].tokens, 16 * ceil_div(windows * second, all)) << windows << " of " << all;
  }
}

TEST_F(EvaluatorTest, RefusesWhatWasReadFromADamagedShard) {
  std::string bytes = read_file(shard("val"));
  bytes[bytes.size() / 2] ^= 1;  // a token of the vocabulary, but another one
  write_file_quickly(shard("val"), bytes);
  expect_user_error([&] { evaluate((folder_ / "data").string()); }, {shard("val"), "expected the checksum"});
}

TEST_F(EvaluatorTest, SaysWhyTheyAreMissing) {
  config_.data.path = {shard("train")};
  config_.data.tokenizer.clear();
  Evaluation without = evaluate(shard("val"));
  EXPECT_EQ(without.bits_per_byte, 0);
  EXPECT_NEAR(without.loss, kLoss, 1e-12);
  for (const std::string& piece : {std::string("no bits per byte: without a tokenizer"), shard("val"),
                                   std::string("--data.tokenizer"), std::string("--tokenizer")})
    EXPECT_NE(without.unknown.find(piece), std::string::npos) << without.unknown;
  SmallShards foreign({}, {std::vector<int32_t>(100, 350)}, 400);
  config_.model.vocab = 400;
  config_.data.tokenizer = (folder_ / "data").string();
  Evaluation other = evaluate((foreign.path() / "val_000000.bin").string());
  EXPECT_EQ(other.bits_per_byte, 0);
  EXPECT_NE(other.unknown.find("has the token 350, and the tokenizer only 301"), std::string::npos) << other.unknown;
}

}  // namespace
}  // namespace tokamak
