#include "data/text_dataset.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/file.h"
#include "base/random.h"
#include "data/bpe_trainer.h"
#include "data/word_border.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

using Ids = std::vector<int32_t>;

std::string words(size_t bytes, uint64_t seed) {
  static const char* const kWords[] = {"the", "king's", "said", "unto", "them,", "go.\n\n", "Zürich", "and",
                                       "42",  "中文",   "  ",   "from", "that",  "we'll",   "with",   "—"};
  std::string text;
  for (uint64_t i = 0; text.size() < bytes; ++i) {
    text += kWords[philox4x32(seed, i)[0] % std::size(kWords)];
    text += i % 11 == 10 ? "\n" : " ";
  }
  return text;
}

class TextDatasetTest : public testing::Test {
 protected:
  TextDatasetTest() {
    Vocabulary vocabulary =
        small_vocabulary({{"t", "h"}, {"th", "e"}, {" ", "a"}, {" ", "the"}, {"o", "m"}, {"a", "n"}});
    tokenizer_ = std::make_shared<const Tokenizer>(vocabulary);
  }

  void add(const std::string& text) {
    files_.push_back(folder_ / fmt::format("{}.txt", files_.size()));
    texts_.push_back(text);
    write_file_quickly(files_.back(), text);
  }

  std::unique_ptr<Dataset> open(int64_t context, int64_t window_bytes = 0) {
    return open_text_dataset({"corpus", files_, context, window_bytes}, tokenizer_);
  }

  /// The slow way: the whole file from the border on, then the whole next one, and so on.
  Ids expected(int64_t window, int64_t window_bytes, size_t count) const {
    auto at = size_t(window * window_bytes);
    size_t file = 0;
    while (at >= texts_[file].size()) at -= texts_[file++].size();
    size_t begin = at == 0 ? 0 : std::min(first_word_border(texts_[file], at), texts_[file].size());
    Ids ids = tokenizer_->encode(std::string_view(texts_[file]).substr(begin));
    while (ids.size() < count) {
      ids.push_back(tokenizer_->end_of_text());
      file = (file + 1) % texts_.size();
      Ids next = tokenizer_->encode(texts_[file]);
      ids.insert(ids.end(), next.begin(), next.end());
    }
    ids.resize(count);
    return ids;
  }

  void expect_windows(int64_t context, int64_t window_bytes) {
    auto dataset = open(context, window_bytes);
    auto reader = dataset->reader();
    Ids ids(size_t(context) + 1);
    for (int64_t i = 0; i < dataset->windows(); ++i) {
      int64_t window = i * 7 % dataset->windows();
      reader->read(window, ids);
      ASSERT_EQ(ids, expected(window, dataset->window_bytes(), ids.size())) << "window " << window;
    }
  }

  TemporaryFolder folder_;
  std::vector<std::filesystem::path> files_;
  std::vector<std::string> texts_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

// As `prepare` does it: the mark is no text, and a file of nothing else is an empty one.
TEST_F(TextDatasetTest, WindowsHaveTheAddedTokensOfTheWholeText) {
  Vocabulary vocabulary = tokenizer_->vocabulary();
  for (const char* text : {"  ", "    ", "said", " un", ".\n", "\n", "n"})
    vocabulary = with_added_token(vocabulary, text, {.special = false});
  tokenizer_ = std::make_shared<const Tokenizer>(vocabulary);
  add(words(30'000, 7));
  add(words(500, 8));
  expect_windows(64, 0);
  expect_windows(500, 90);
}

TEST_F(TextDatasetTest, RefusesAddedTokensThatNeedTheWholeText) {
  add(words(3000, 7));
  tokenizer_ =
      std::make_shared<const Tokenizer>(with_added_token(tokenizer_->vocabulary(), "said unto", {.special = false}));
  expect_user_error([&] { open(64); }, {"corpus", "'said unto'", "tokamak prepare"});
}

TEST_F(TextDatasetTest, ByteOrderMarksAreLeftOut) {
  add("\xef\xbb\xbf" + words(3000, 1));
  add("\xef\xbb\xbf");
  add("\xef\xbb\xbf" + words(2000, 2));
  auto marked = open(32);
  std::vector<FileRange> place = marked->reader()->place(0);
  EXPECT_EQ(place.at(0).begin, 3) << "of the file";
  files_.erase(files_.begin() + 1);
  texts_ = {words(3000, 1), words(2000, 2)};
  for (size_t i = 0; i < 2; ++i) write_file_quickly(files_[i], texts_[i]);
  auto plain = open(32);
  EXPECT_EQ(marked->windows(), plain->windows());
  EXPECT_EQ(marked->facts().text_bytes, plain->facts().text_bytes);
  for (size_t i = 0; i < 2; ++i) write_file_quickly(files_[i], "\xef\xbb\xbf" + texts_[i]);
  expect_windows(32, plain->window_bytes());
}

TEST_F(TextDatasetTest, WindowsAreTokensOfTheWholeText) {
  add(words(5000, 1));
  add(words(300, 2));
  add(words(4000, 3));
  for (int64_t context : {1, 8, 100, 3000}) expect_windows(context, 0);
  for (int64_t window_bytes : {1, 13, 1000}) expect_windows(20, window_bytes);  // far too few bytes, and far too many
  expect_windows(1000, 50);  // in many pieces, none of which may cut a word
}

TEST_F(TextDatasetTest, BytesPerWindowAreMeasured) {
  add(words(50'000, 1));
  auto dataset = open(16);
  double ratio = 50'000 / double(tokenizer_->encode(texts_[0]).size());
  EXPECT_NEAR(double(dataset->window_bytes()), 16 * ratio, 1);
  EXPECT_EQ(dataset->windows(), int64_t(texts_[0].size()) / dataset->window_bytes());
  EXPECT_EQ(open(16, 100)->window_bytes(), 100);
}

// A single word, many times longer than a window and than what is read at once.
TEST_F(TextDatasetTest, TextWithoutBorders) {
  add(std::string(300'000, 'x') + " end");
  auto dataset = open(10, 1000);
  auto reader = dataset->reader();
  Ids ids(11);
  for (int64_t window : {int64_t(0), int64_t(1), dataset->windows() - 1}) {
    reader->read(window, ids);
    EXPECT_EQ(tokenizer_->decode(ids).substr(0, 4), window == 299 ? " end" : "xxxx") << window;
  }
  EXPECT_EQ(reader->place(1), (std::vector<FileRange>{{files_[0].string(), 1000, 11}}));
}

TEST_F(TextDatasetTest, ACharacterIsNotCutWhereThereAreNoBorders) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "é";
  add(text);
  auto reader = open(10, 999)->reader();
  Ids ids(11);
  reader->read(1, ids);
  EXPECT_EQ(tokenizer_->decode(ids).substr(0, 4), "éé");
}

TEST_F(TextDatasetTest, PlacesAreTheBytesOfTheTokens) {
  add(words(3000, 1));
  add(words(10, 2));
  add(words(500, 3));
  auto dataset = open(60, 40);
  auto reader = dataset->reader();
  Ids ids(61);
  size_t most = 0;
  for (int64_t window = 0; window < dataset->windows(); ++window) {
    reader->read(window, ids);
    std::string text;
    std::vector<FileRange> ranges = reader->place(window);
    most = std::max(most, ranges.size());
    for (const FileRange& range : ranges) {
      size_t file = size_t(std::find(files_.begin(), files_.end(), range.path) - files_.begin());
      text += texts_.at(file).substr(size_t(range.begin), size_t(range.length));
    }
    std::erase(ids, tokenizer_->end_of_text());
    EXPECT_EQ(tokenizer_->decode(ids), text) << "window " << window;
    ids.resize(61);
  }
  EXPECT_EQ(most, 3u) << "a window over the end of a small file";
}

TEST_F(TextDatasetTest, KnowsItsFilesAndItsVocabulary) {
  add("one two three");
  write_file_quickly(folder_ / "empty.txt", "");
  files_.push_back(folder_ / "empty.txt");
  auto dataset = open(2, 4);
  EXPECT_EQ(dataset->windows(), 3);
  EXPECT_EQ(dataset->fingerprints().size(), 1u);
  EXPECT_EQ(dataset->facts().text_bytes, 13);
  EXPECT_EQ(dataset->facts().vocab_size, tokenizer_->vocab_size());
  EXPECT_EQ(dataset->facts().end_of_text, tokenizer_->end_of_text());
  EXPECT_EQ(std::string(dataset->kind()), "text");
}

TEST_F(TextDatasetTest, SaysWhatIsMissing) {
  add("too short");
  expect_user_error([&] { open(1000); }, {"corpus", "model.context = 1000", "got 9 bytes", "lower model.context"});
  files_ = {folder_ / "nowhere.txt"};
  expect_user_error([&] { open(2); }, {"nowhere.txt", "No such file"});
  write_file_quickly(folder_ / "empty.txt", "");
  files_ = {folder_ / "empty.txt"};
  expect_user_error([&] { open(2); }, {"corpus", "expected text", "empty"});
}

TEST_F(TextDatasetTest, SaysWhenAFileBecameShorter) {
  add(words(3000, 1));
  auto dataset = open(60);
  write_file_quickly(files_[0], "cut");
  Ids ids(61);
  auto reader = dataset->reader();
  expect_user_error([&] { reader->read(dataset->windows() / 2, ids); }, {"0.txt", "got"});
}

}  // namespace
}  // namespace tokamak
