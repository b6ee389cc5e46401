// Validation documents that are drawn from all of the data.
#include "data/prepare_draw.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/file.h"
#include "data/prepare.h"
#include "data/tokenizer_files.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

struct Counted {
  int64_t train = 0, val = 0, documents = 0, runs = 0;
};

Counted count(const ValidationDraw& draw, int64_t tokens) {
  Counted counted;
  int64_t at = 0;
  bool was_val = false;
  draw.for_each([&](const DrawnRun& run) {
    EXPECT_EQ(run.begin, at);
    EXPECT_TRUE(at == 0 || was_val != run.is_val) << "neighbours are one run";
    was_val = run.is_val;
    at = run.end;
    (run.is_val ? counted.val : counted.train) += run.end - run.begin;
    counted.documents += run.documents;
    ++counted.runs;
  });
  EXPECT_EQ(at, tokens);
  return counted;
}

std::vector<int64_t> documents_of(int64_t count, int64_t length) {
  std::vector<int64_t> starts(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) starts[size_t(i)] = i * length;
  return starts;
}

TEST(ValidationDraw, TakesAboutTheFractionFromEverywhere) {
  std::vector<int64_t> starts = documents_of(20'000, 10);
  ValidationDraw draw(200'000, starts, 0.05, 1);
  EXPECT_EQ(draw.pieces(), 20'000);
  EXPECT_TRUE(draw.is_enough());
  Counted counted = count(draw, 200'000);
  EXPECT_NEAR(double(counted.val) / 200'000, 0.05, 0.005);
  EXPECT_EQ(counted.documents, 20'000);
  EXPECT_GT(counted.runs, 1500);
}

TEST(ValidationDraw, WhatComesBehindChangesNothingBefore) {
  std::vector<int64_t> few = documents_of(1000, 7), more = documents_of(3000, 7);
  std::vector<bool> is_val(7000), same(7000);
  auto mark = [](const ValidationDraw& draw, std::vector<bool>& marks) {
    draw.for_each([&](const DrawnRun& run) {
      for (int64_t i = run.begin; i < std::min(run.end, int64_t(7000)); ++i) marks[size_t(i)] = run.is_val;
    });
  };
  mark(ValidationDraw(7000, few, 0.1, 3), is_val);
  mark(ValidationDraw(21000, more, 0.1, 3), same);
  EXPECT_EQ(is_val, same);
  std::vector<bool> other(7000);
  mark(ValidationDraw(7000, few, 0.1, 4), other);
  EXPECT_NE(is_val, other) << "another seed";
}

TEST(ValidationDraw, LongDocumentsComeInPieces) {
  std::vector<int64_t> starts = {0, 5};
  int64_t tokens = 100 * kDrawnTokens;
  ValidationDraw draw(tokens, starts, 0.2, 2);
  EXPECT_EQ(draw.pieces(), 1 + 100);
  EXPECT_FALSE(draw.is_enough()) << "20 are to be expected";
  Counted counted = count(draw, tokens);
  EXPECT_NEAR(double(counted.val) / double(tokens), 0.2, 0.1);
  EXPECT_EQ(counted.documents, 2);
}

TEST(ValidationDraw, NeitherPartIsEmptyWhereThereAreTwoPieces) {
  std::vector<int64_t> starts = documents_of(3, 10);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (double fraction : {0.01, 0.99}) {
      Counted counted = count(ValidationDraw(30, starts, fraction, seed), 30);
      EXPECT_GT(counted.val, 0);
      EXPECT_GT(counted.train, 0);
    }
    EXPECT_EQ(count(ValidationDraw(30, starts, 0, seed), 30).val, 0);
  }
}

class PrepareDrawn : public testing::Test {
 protected:
  /// Two kinds of text in a folder, of many documents each.
  PrepareOptions options(const std::string& out, int threads = 2) {
    std::string letters, digits;
    for (int i = 0; i < 1000; ++i) {
      letters += "words " + std::string(size_t(1 + i % 17), char('a' + i % 26)) + "<|endoftext|>\n";
      digits += std::string(size_t(1 + i % 5), char('0' + i % 10)) + "<|endoftext|>\n";
    }
    write_file_quickly(folder_ / "a.txt", letters);
    write_file_quickly(folder_ / "b.txt", digits);
    PrepareOptions options{.inputs = {(folder_ / "a.txt").string(), (folder_ / "b.txt").string()}};
    options.sources.separator = "<|endoftext|>";
    options.out = folder_ / out;
    options.vocab_size = 257;
    options.shard_tokens = 1000;
    options.val_fraction = 0.1;
    options.threads = threads;
    options.batch_bytes = 500;
    return options;
  }

  std::string text(const fs::path& folder, const SplitIndex& split) {
    TokenStream stream(folder, split);
    stream.verify();
    std::vector<int32_t> ids(static_cast<size_t>(stream.size()));
    stream.read(0, ids);
    return load_tokenizer(folder).decode(ids);
  }

  std::string files_of(const fs::path& folder) {
    std::string all;
    std::vector<fs::path> paths(fs::directory_iterator(folder), fs::directory_iterator{});
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) all += path.filename().string() + "\n" + read_file(path);
    return all;
  }

  MemoryFolder folder_;
};

TEST_F(PrepareDrawn, ValidatesOnBothKinds) {
  PrepareOptions drawn = options("drawn");  // auto
  TokenShardIndex index = prepare(drawn);
  std::string val = text(drawn.out, index.val), train = text(drawn.out, index.train);
  EXPECT_NE(val.find("words"), std::string::npos);
  EXPECT_NE(val.find("999"), std::string::npos);
  EXPECT_EQ(index.val.sources.size(), 2u);
  EXPECT_EQ(index.train.sources.size(), 2u);
  PrepareOptions end = options("end");
  end.val_split = "end";
  TokenShardIndex at_end = prepare(end);
  EXPECT_EQ(text(end.out, at_end.val).find("words"), std::string::npos) << "the end of the last file alone";
  // Together they are the same documents, tokens and bytes.
  EXPECT_EQ(index.train.tokens() + index.val.tokens(), at_end.train.tokens() + at_end.val.tokens());
  EXPECT_EQ(index.train.documents + index.val.documents, at_end.train.documents + at_end.val.documents);
  EXPECT_EQ(index.train.text_bytes + index.val.text_bytes, at_end.train.text_bytes + at_end.val.text_bytes);
  EXPECT_EQ(std::count(train.begin(), train.end(), '<') + std::count(val.begin(), val.end(), '<'), 2000 - 1)
      << "each begins with its marker but the first";
  EXPECT_NEAR(double(index.val.documents), 200, 60);
}

TEST_F(PrepareDrawn, IsTheSameForAnyNumberOfThreads) {
  prepare(options("one", 1));
  prepare(options("four", 4));
  EXPECT_EQ(files_of(folder_ / "one"), files_of(folder_ / "four"));
  PrepareOptions other = options("other");
  other.val_seed = 5;
  prepare(other);
  EXPECT_NE(files_of(folder_ / "one"), files_of(folder_ / "other"));
}

// Stopped after each of its first pauses, also while documents are drawn.
TEST_F(PrepareDrawn, GoesOnWhereItWasStopped) {
  TokenShardIndex expected = prepare(options("whole"));
  PrepareOptions stopped = options("stopped");
  int stops = 0;
  for (int pauses = 5;; pauses = pauses * 3 / 2) {
    int left = pauses;
    try {
      EXPECT_EQ(format_token_shard_index(prepare(stopped, {.stop = [&] { return --left < 0; }})),
                format_token_shard_index(expected));
      break;
    } catch (const UserError&) {
      ++stops;
    }
  }
  EXPECT_GT(stops, 5);
  EXPECT_EQ(files_of(stopped.out), files_of(folder_ / "whole"));
}

TEST_F(PrepareDrawn, FewDocumentsAreCutAtTheEnd) {
  PrepareOptions few = options("few");
  few.inputs = {few.inputs[0]};
  write_file_quickly(folder_ / "a.txt", "one<|endoftext|>two<|endoftext|>three<|endoftext|>four");
  few.val_fraction = 0.25;
  TokenShardIndex index = prepare(few);
  EXPECT_TRUE(text(few.out, index.val).ends_with("four"));
  few.val_split = "drawn";
  few.val_seed = 2;
  EXPECT_GT(prepare(few).val.documents, 0);
}

}  // namespace
}  // namespace tokamak
