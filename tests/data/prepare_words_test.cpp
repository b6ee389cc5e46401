#include "data/prepare_words.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

class PrepareWordsTest : public testing::Test {
 protected:
  PrepareOptions options(int threads) {
    return {.sources = {.part_bytes = 100}, .vocab_bytes = 0, .threads = threads, .batch_bytes = 100};
  }

  WordCounts count(const PrepareOptions& options) {
    return count_words(files_, options, {.progress = [](auto&) {}, .stop = [] { return false; }});
  }

  fs::path add_file(const std::string& name, const std::string& text) {
    write_file_quickly(folder_ / name, text);
    return files_.emplace_back(folder_ / name);
  }

  TemporaryFolder folder_;
  std::vector<fs::path> files_;
};

int64_t total(const WordCounts& words) {
  int64_t sum = 0;
  for (const auto& [word, count] : words.counts()) sum += count * int64_t(word.size());
  return sum;
}

TEST_F(PrepareWordsTest, CountsWhatOneThreadWouldInOneGo) {
  std::string text = test::tiny_text(5000), more = test::tiny_text(5000, 2);
  add_file("a.txt", text);
  add_file("b.txt", more);
  WordCounts expected;
  expected.add(text);
  expected.add(more);
  for (int threads : {1, 2, 3}) EXPECT_EQ(count(options(threads)).counts(), expected.counts());
}

TEST_F(PrepareWordsTest, TakesTheBeginningsOfAllFiles) {
  add_file("a.txt", test::tiny_text(20'000) + " aaaa");
  add_file("b.txt", "bbbb " + test::tiny_text(20'000));
  PrepareOptions options = this->options(2);
  options.vocab_bytes = 4000;
  WordCounts words = count(options);
  EXPECT_FALSE(words.counts().contains(" aaaa"));
  EXPECT_TRUE(words.counts().contains("bbbb"));
  EXPECT_GE(total(words), 4000);
  EXPECT_LE(total(words), 4000 + 200);
}

TEST_F(PrepareWordsTest, ForgetsTheRarestWhenThereAreTooMany) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += fmt::format(" often common w{}", char('a' + i % 26)) + std::string(1, char('a' + i / 26 % 26));
  add_file("a.txt", text);
  PrepareOptions options = this->options(1);
  options.vocab_words = 50;
  WordCounts words = count(options), same = count(this->options(1));
  EXPECT_LE(words.counts().size(), 50u);
  EXPECT_GT(same.counts().size(), 600u);
  EXPECT_EQ(words.counts().at(" often"), 1000);
  options.threads = 3;
  EXPECT_EQ(count(options).counts(), words.counts());
}

TEST_F(PrepareWordsTest, StopsWhenToldTo) {
  add_file("a.txt", test::tiny_text(5000));
  expect_user_error([&] { count_words(files_, options(1), {.progress = [](auto&) {}, .stop = [] { return true; }}); },
                    {"stopped"});
}

}  // namespace
}  // namespace tokamak
