#include "data/prepare_reader.h"

#include <gtest/gtest.h>

#include "data/prepare_encoder.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;
using Parts = std::vector<PrepareBatch::Part>;

constexpr int32_t kEnd = 256;  // of the vocabulary that has only bytes

class PrepareReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    write_file_quickly(folder_ / "a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n{\"text\": \"three\"}\n");
    write_file_quickly(folder_ / "b.jsonl", "{\"text\": \"\"}\n");
    write_file_quickly(folder_ / "c.txt", "four and five and six");
    files_ = {folder_ / "a.jsonl", folder_ / "b.jsonl", folder_ / "c.txt"};
  }

  /// Everything from a place on, as one batch.
  PrepareBatch read(PreparePlace from, int64_t batch_bytes = 1, const Vocabulary& vocabulary = small_vocabulary({})) {
    SourceOptions sources{.part_bytes = 8};
    PrepareReader reader(files_, {.sources = sources, .separator = kEnd, .batch_bytes = batch_bytes}, from);
    Tokenizer tokenizer(vocabulary);
    PrepareEncoder encoder(tokenizer, files_);
    PrepareBatch all;
    batches_ = 0;
    for (PrepareBatch batch; reader.fill(batch); ++batches_) {
      encoder.encode(batch);
      all.parts.insert(all.parts.end(), batch.parts.begin(), batch.parts.end());
      all.ids.insert(all.ids.end(), batch.ids.begin(), batch.ids.end());
      EXPECT_GE(batch.bytes_read, all.bytes_read);
      all.bytes_read = batch.bytes_read;
    }
    return all;
  }

  static std::string show(const Ids& ids) {
    std::string text;
    for (int32_t id : ids) text += id == kEnd ? '|' : char(id);
    return text;
  }

  TemporaryFolder folder_;
  std::vector<fs::path> files_;
  int64_t batches_ = 0;
};

TEST_F(PrepareReaderTest, SeparatesDocumentsButNotParts) {
  PrepareBatch all = read({});
  EXPECT_EQ(show(all.ids), "one|two|three|four and five and six");
  ASSERT_EQ(all.parts.size(), 6u);
  EXPECT_EQ(all.parts[3].place.file, 2);
  EXPECT_EQ(all.parts[5].place.part, 2);
  EXPECT_EQ(batches_, 6);
  EXPECT_EQ(read({}, 1000).ids, all.ids);
  EXPECT_EQ(batches_, 1);
}

TEST_F(PrepareReaderTest, GoesOnFromEveryToken) {
  PrepareBatch all = read({});
  size_t before = 0;
  for (const PrepareBatch::Part& part : all.parts) {
    for (size_t tokens = 0; tokens <= part.ids; ++tokens) {
      PreparePlace place = part.place;
      place.tokens = int64_t(tokens);
      EXPECT_EQ(show(read(place).ids), show(Ids(all.ids.begin() + ptrdiff_t(before + tokens), all.ids.end())));
    }
    before += part.ids;
  }
}

TEST_F(PrepareReaderTest, TellsHowFarItIs) {
  int64_t total = 0;
  for (const fs::path& file : files_) total += input_size(file);
  EXPECT_EQ(read({}).bytes_read, total);
  EXPECT_EQ(input_size(folder_ / "nowhere"), 0);
}

TEST_F(PrepareReaderTest, LimitsTheTextOfEachFile) {
  auto read_text = [&](std::vector<int64_t> limits) {
    PrepareReader reader(files_, {.sources = {.part_bytes = 8}, .text_limits = limits});
    PrepareBatch batch;
    reader.fill(batch);
    return batch.text;
  };
  EXPECT_EQ(read_text({4, 4, 8}), "onetwofour and");  // whole parts; what one file took too much the next lacks
  EXPECT_EQ(read_text({0, 0, 0}), "");
  EXPECT_EQ(read_text({1, 1, 100}), "onefour and five and six");
}

/// Batches of tokens, as sources of tokens give them.
PrepareBatch given(std::vector<Ids> documents, Parts parts) {
  PrepareBatch batch{.parts = std::move(parts)};
  for (size_t i = 0; i < documents.size(); ++i) {
    batch.parts[i].given = documents[i].size();
    batch.given.insert(batch.given.end(), documents[i].begin(), documents[i].end());
  }
  return batch;
}

// "four and five and six" comes in parts, between which the token could lie.
TEST_F(PrepareReaderTest, RefusesPartsWhereATokenNeedsTheWholeText) {
  auto with = [](const std::string& text) { return with_added_token(small_vocabulary({}), text, {.special = false}); };
  EXPECT_EQ(read({}, 1, with("wo")).ids[5], 257);
  expect_user_error([&] { read({}, 1, with("five and")); },
                    {"c.txt", "documents of one part", "'five and'", "--separator"});
  files_.pop_back();
  EXPECT_EQ(show(read({}, 1, with("five and")).ids), "one|two|three");
}

TEST(PrepareEncoder, CopiesTokens) {
  Tokenizer tokenizer(small_vocabulary({{"a", "b"}}));
  std::vector<fs::path> files = {"tokens.bin"};
  PrepareEncoder encoder(tokenizer, files);
  PrepareBatch batch = given({{5, 6, 256}, {7}}, {{}, {.separator = true}});
  encoder.encode(batch);
  EXPECT_EQ(batch.ids, (Ids{5, 6, 256, 257, 7}));
  EXPECT_EQ(batch.parts[0].ids, 3u);
  EXPECT_EQ(batch.parts[1].ids, 2u);
}

TEST(PrepareEncoder, RefusesTokensOutsideTheVocabulary) {
  Tokenizer tokenizer(small_vocabulary({}));
  std::vector<fs::path> files = {"tokens.bin"};
  for (int32_t wrong : {257, -1}) {
    PrepareBatch batch = given({{5, wrong}}, {{}});
    expect_user_error([&] { PrepareEncoder(tokenizer, files).encode(batch); },
                      {"tokens.bin", "0 to 256", "got " + std::to_string(wrong), "--vocab"});
  }
}

}  // namespace
}  // namespace tokamak
