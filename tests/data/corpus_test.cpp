#include "data/corpus.h"

#include <gtest/gtest.h>

#include "config/config.h"
#include "data/data_tokenizer.h"
#include "data/tokenizer_files.h"
#include "tests/data/small_corpus.h"
#include "tests/data/small_shards.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"

namespace tokamak {
namespace {

using Paths = std::vector<std::string>;

class CorpusTest : public testing::Test {
 protected:
  CorpusTest() {
    config_.model = {.context = 8, .vocab = 300};
    save_tokenizer(small_vocabulary({{"a", "b"}}), folder_.path());
    tokenizer_ = std::make_shared<const Tokenizer>(load_tokenizer(folder_.path()));
  }

  std::string write(const std::string& name, const std::string& content) {
    write_file_quickly(folder_ / name, content);
    return (folder_ / name).string();
  }

  Corpus train(Paths paths) {
    config_.data.path = std::move(paths);
    return open_training_data(config_, tokenizer_);
  }

  std::optional<Corpus> validation(Paths paths, Paths val_paths) {
    config_.data.path = std::move(paths);
    config_.data.val_path = std::move(val_paths);
    return open_validation_data(config_, tokenizer_);
  }

  static SmallShards shards(size_t train, size_t val) {
    return {{std::vector<int32_t>(train, 1)}, {std::vector<int32_t>(val, 2)}};
  }

  TemporaryFolder folder_;
  RunConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(CorpusTest, APreparedFolder) {
  SmallShards data = shards(100, 20);
  Corpus corpus = train({data.path().string()});
  EXPECT_EQ(corpus.windows(), 12);
  EXPECT_EQ(corpus.needed_vocab(), 100);
  EXPECT_EQ(corpus.end_of_text(), 99);
  DataRecord record = corpus.record();
  ASSERT_EQ(record.datasets.size(), 1u);
  EXPECT_EQ(record.datasets[0].kind, "prepared");
  EXPECT_EQ(record.datasets[0].share, (MixtureShare{12, kMixtureBlock}));
  EXPECT_EQ(record.datasets[0].files.size(), 1u);
  EXPECT_EQ(record.context, 8);
  EXPECT_EQ(record.seed, uint64_t(config_.train.seed));
}

TEST_F(CorpusTest, NeedsOneMoreThanItsLargestId) {
  SmallShards data({std::vector<int32_t>(100, 100)}, {std::vector<int32_t>(20, 1)}, 100);
  EXPECT_EQ(train({data.path().string()}).needed_vocab(), 101);
}

TEST_F(CorpusTest, AMixtureOfAllForms) {
  SmallShards data = shards(1000, 20);
  std::string text = write("a.txt", std::string(5000, 'x') + " y z");
  Corpus corpus = train({data.path().string() + "@1", text + "@3"});
  EXPECT_EQ(corpus.order().shares()[0].quota, 1024);
  EXPECT_EQ(corpus.order().shares()[1].quota, 3072);
  EXPECT_EQ(std::string(corpus.datasets()[1]->kind()), "text");
  EXPECT_EQ(corpus.record().datasets[1].path, text);
  EXPECT_GT(corpus.record().datasets[1].window_bytes, 0);
}

TEST_F(CorpusTest, WithoutWeightsEachCountsByItsSize) {
  SmallShards small = shards(1 + 8 * 100, 0), large = shards(1 + 8 * 300, 0);
  Corpus corpus = train({small.path().string(), large.path().string()});
  EXPECT_EQ(corpus.order().shares()[0].quota, 1024);
  EXPECT_EQ(corpus.order().shares()[1].quota, 3072);
}

TEST_F(CorpusTest, TextKeepsTheWindowsThatTheRunBeganWith) {
  std::string text = write("a.txt", std::string(5000, 'x'));
  DataRecord began = train({text}).record();
  began.datasets[0].window_bytes = 123;
  EXPECT_EQ(open_training_data(config_, tokenizer_, &began).datasets()[0]->window_bytes(), 123);
}

TEST_F(CorpusTest, BytesOfZeroAreNoText) {
  expect_user_error([&] { train({write("z.txt", "\x28\xb5\x2f\xfd" + std::string(500, 'x'))}); },
                    {"z.txt", "expected text", "compressed", "unpack it"});
  expect_user_error([&] { train({write("a.txt", std::string("a\0b\0", 4) + std::string(500, 'x'))}); },
                    {"a.txt", "expected text", "UTF-16", "name its format"});
  EXPECT_GT(train({write("a.text", std::string(500, 'x'))}).windows(), 0);
  expect_user_error([&] { train({write("a.idx", std::string("MMIDIDX\0", 8) + std::string(500, 'x'))}); },
                    {"a.idx", "expected text", "bytes of zero", "name its format"});
}

TEST_F(CorpusTest, ValidationIsWhatPrepareKept) {
  SmallShards with = shards(100, 20), without = shards(100, 8);
  std::optional<Corpus> corpus = validation({with.path().string(), without.path().string()}, {});
  ASSERT_TRUE(corpus);
  EXPECT_EQ(corpus->datasets().size(), 1u);
  EXPECT_EQ(corpus->windows(), 2);
  EXPECT_FALSE(validation({without.path().string()}, {}));
  EXPECT_FALSE(validation({write("a.txt", std::string(500, 'x'))}, {}));
}

TEST_F(CorpusTest, ValidationOfItsOwn) {
  SmallShards with = shards(100, 20), without = shards(50, 0);
  std::string text = write("val.txt", std::string(500, 'x'));
  EXPECT_EQ(validation({"nowhere"}, {with.path().string()})->windows(), 2);
  EXPECT_EQ(validation({"nowhere"}, {without.path().string()})->windows(), 6) << "it has no val split: all of it";
  EXPECT_EQ(std::string(validation({"nowhere"}, {text})->datasets()[0]->kind()), "text");
}

TEST_F(CorpusTest, ValidationKeepsTheOrderOfTheData) {
  Corpus corpus = counting_corpus({91}, {1}, 6)->sequential();
  SampleOrder order = corpus.order();
  for (int64_t sample = 0; sample < 30; ++sample) EXPECT_EQ(order.at(sample).window, sample % 15);
}

TEST_F(CorpusTest, BitsPerByteNeedTheBytesOfAll) {
  SmallShards data = shards(100, 20);
  TokenShardIndex index = data.index();
  index.train.text_bytes = 400;
  write_token_shard_index(index, data.path());
  EXPECT_DOUBLE_EQ(train({data.path().string()}).tokens_per_byte(), 0.25);
  EXPECT_EQ(train({data.path().string(), write("a.txt", std::string(500, 'x'))}).tokens_per_byte(), 0);
}

TEST_F(CorpusTest, VocabularyTooSmall) {
  SmallShards data = shards(100, 20);
  config_.model.vocab = 99;
  expect_user_error([&] { train({data.path().string()}); },
                    {"vocabulary is too small for the data", "at least 100", "got 99", "model.vocab"});
  std::string text = write("a.txt", std::string(500, 'x'));
  expect_user_error([&] { train({text}); }, {"vocabulary is too small", fmt::format("{}", tokenizer_->vocab_size())});
}

TEST_F(CorpusTest, FormsThatCannotBeReadFromAnyPlace) {
  std::string jsonl = write("a.jsonl", "{\"text\": \"one\"}\n"), packed = write("a.txt.gz", "packed");
  expect_user_error([&] { train({jsonl}); }, {"a.jsonl", "jsonl", "tokamak prepare " + jsonl});
  expect_user_error([&] { train({packed}); }, {"a.txt.gz", "compressed", "tokamak prepare " + packed});
}

TEST_F(CorpusTest, DataThatIsNotThere) {
  expect_user_error([&] { train({"nowhere"}); }, {"nowhere", "does not exist", "tokamak prepare"});
  expect_user_error([&] { train({(folder_ / "*.text").string()}); }, {"*.text", "got none"});
  expect_user_error([&] { train({}); }, {"[data.path]", "nothing"});
}

TEST_F(CorpusTest, TextNeedsATokenizer) {
  std::string text = write("a.txt", std::string(500, 'x'));
  tokenizer_ = nullptr;
  expect_user_error([&] { train({text}); }, {"tokenizer for the text of " + text, "--data.tokenizer"});
}

TEST_F(CorpusTest, TheVocabularyOfTheData) {
  SmallShards data = shards(100, 20);
  std::string text = write("a.txt", std::string(500, 'x'));
  auto vocab = [&](Paths paths) {
    config_.model.vocab = 0;
    config_.data.path = std::move(paths);
    return with_data_vocab(config_).model.vocab;
  };
  EXPECT_EQ(vocab({data.path().string()}), 100);
  expect_user_error([&] { vocab({text}); }, {"[model.vocab]", "got 0", "--model.vocab", "--data.tokenizer"});
  expect_user_error([&] { vocab({"nowhere"}); }, {"[model.vocab]", "nowhere, which does not exist", "--model.vocab"});
  config_.data.tokenizer = folder_.path().string();
  EXPECT_EQ(vocab({text}), tokenizer_->vocab_size());
  EXPECT_EQ(vocab({text, data.path().string()}), 100);
}

TEST_F(CorpusTest, OneTokenizerForAllFolders) {
  SmallShards one = shards(100, 20), two = shards(100, 20);
  config_.data.path = {one.path().string(), two.path().string()};
  EXPECT_EQ(load_data_tokenizer(config_.data), nullptr);
  save_tokenizer(small_vocabulary({{"a", "b"}}), one.path());
  save_tokenizer(small_vocabulary({{"a", "b"}}), two.path());
  EXPECT_EQ(tokenizer_fingerprint(*load_data_tokenizer(config_.data)), tokenizer_fingerprint(*tokenizer_));
  save_tokenizer(small_vocabulary({{"a", "c"}}), two.path());
  expect_user_error([&] { load_data_tokenizer(config_.data); },
                    {"one vocabulary for all data", one.path().string(), two.path().string()});
}

TEST_F(CorpusTest, TheMarkerBetweenDocuments) {
  SmallShards data = shards(100, 20);
  Corpus corpus = train({data.path().string()});
  EXPECT_EQ(find_end_of_text(config_, corpus, tokenizer_.get()), 99);
  config_.data.end_of_text = 7;
  EXPECT_EQ(find_end_of_text(config_, corpus, tokenizer_.get()), 7);
  config_.data.end_of_text = -1;
  EXPECT_EQ(mask_token(config_, corpus, nullptr), -1);
  config_.data.mask_documents = true;
  EXPECT_EQ(mask_token(config_, corpus, nullptr), 99);
  Corpus tokens = *counting_corpus({91}, {1}, 6);
  expect_user_error([&] { mask_token(config_, tokens, nullptr); },
                    {"[data.mask_documents]", "memory", "--data.end_of_text", "--data.tokenizer"});
  EXPECT_EQ(find_end_of_text(config_, tokens, tokenizer_.get()), tokenizer_->end_of_text());
  EXPECT_FALSE(find_end_of_text(config_, tokens, nullptr));
}

}  // namespace
}  // namespace tokamak
