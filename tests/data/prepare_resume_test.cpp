// The same bytes whatever the threads, and wherever it was interrupted.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "data/prepare.h"
#include "data/prepare_journal.h"
#include "data/tokenizer_files.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using Content = std::map<std::string, std::string>;

/// No UserError, so that prepare() does nothing about it: as if the process were gone.
struct Killed {};

class PrepareResumeTest : public testing::Test {
 protected:
  void SetUp() override {
    make_folder(folder_ / "in");
    write_file_quickly(folder_ / "in/a.txt", test::tiny_text(4000));
    std::string lines;
    for (uint64_t i = 0; i < 40; ++i) lines += "{\"text\": \"" + std::string(i % 7, 'x') + " king " + "gold\"}\n";
    write_file_quickly(folder_ / "in/b.jsonl", lines);
    write_file_quickly(folder_ / "in/c.txt", test::tiny_text(700, 2));
  }

  PrepareOptions options(const std::string& out, int threads = 1) {
    return {.inputs = {(folder_ / "in").string()},
            .out = folder_ / out,
            .vocab_size = 270,
            .val_fraction = 0.2,
            .shard_tokens = shard_tokens_,
            .threads = threads,
            .batch_bytes = 64};
  }

  /// The files of a folder; other data or leftovers would show.
  Content content(const std::string& out) {
    Content files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / out))
      if (entry.is_regular_file()) files[entry.path().lexically_relative(folder_ / out)] = read_file(entry.path());
    return files;
  }

  Content expected() {
    prepare(options("straight"));
    return content("straight");
  }

  /// Runs until the moment of that number; true if it came.
  bool run_and_kill(const PrepareOptions& options, int moment) {
    try {
      prepare(options, {.progress = [&](const PrepareProgress&) {
                if (moment-- == 0) throw Killed();
              }});
    } catch (const Killed&) {
      return true;
    }
    return false;
  }

  MemoryFolder folder_;
  int64_t shard_tokens_ = 100;
};

/// All tokens of both splits.
std::vector<int32_t> tokens_of(const fs::path& folder) {
  TokenShardIndex index = read_token_shard_index(folder);
  std::vector<int32_t> all;
  for (const SplitIndex* split : {&index.train, &index.val}) {
    TokenStream stream(folder, *split);
    stream.verify();
    std::vector<int32_t> ids(size_t(stream.size()));
    stream.read(0, ids);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

TEST_F(PrepareResumeTest, IsWhatASimpleLoopMakes) {
  PrepareOptions options = this->options("data", 3);
  TokenShardIndex index = prepare(options);
  Tokenizer tokenizer = load_tokenizer(options.out);
  std::vector<int32_t> expected, documents;
  for (const fs::path& file : find_files(options.inputs[0], {})) {
    auto source = open_source(file, {});
    for (Document document; source->next(document);) {
      documents.push_back(int32_t(expected.size()));
      if (!expected.empty()) expected.push_back(tokenizer.end_of_text());
      auto ids = tokenizer.encode(document.text);
      expected.insert(expected.end(), ids.begin(), ids.end());
    }
  }
  EXPECT_EQ(tokens_of(options.out), expected);
  EXPECT_EQ(index.train.documents + index.val.documents, int64_t(documents.size()));
  int64_t split = index.train.tokens();
  EXPECT_TRUE(std::count(documents.begin(), documents.end(), split));
  EXPECT_NEAR(double(split), 0.8 * double(expected.size()), 0.1 * double(expected.size()));
  for (const SplitIndex* part : {&index.train, &index.val})
    for (size_t i = 0; i + 1 < part->shards.size(); ++i) EXPECT_EQ(part->shards[i].tokens, 100);
  size_t separators = documents.size() - 1, text_bytes = size_t(index.train.text_bytes + index.val.text_bytes);
  EXPECT_EQ(tokenizer.decode(expected).size(), text_bytes + separators * std::string_view(kEndOfText).size());
}

TEST_F(PrepareResumeTest, ThreadsChangeNothing) {
  Content straight = expected();
  for (int threads : {2, 5}) {
    prepare(options("data", threads));
    EXPECT_EQ(content("data"), straight);
  }
}

TEST_F(PrepareResumeTest, NamesTheFilesOfEachSplit) {
  TokenShardIndex index = prepare(options("data"));
  auto names = [](const SplitIndex& split) {
    std::vector<std::string> names;
    for (const FileFingerprint& file : split.sources) names.push_back(fs::path(file.path).filename());
    return names;
  };
  EXPECT_EQ(names(index.train), (std::vector<std::string>{"a.txt", "b.jsonl"}));
  EXPECT_EQ(names(index.val), (std::vector<std::string>{"b.jsonl", "c.txt"}));
  EXPECT_EQ(index.val.sources[1].bytes, int64_t(fs::file_size(folder_ / "in/c.txt")));
}

TEST_F(PrepareResumeTest, KilledAtEveryMoment) {
  Content straight = expected();
  int moment = 0;
  for (; run_and_kill(options("data", 2), moment); ++moment) {
    PrepareOptions again = options("data", 1 + moment % 3);
    ASSERT_NO_THROW(prepare(again));
    ASSERT_EQ(content("data"), straight) << "killed at moment " << moment;
    if (moment % 2 == 0) fs::remove_all(folder_ / "data");  // into an empty folder and over earlier data
  }
  EXPECT_GT(moment, 50);
}

TEST_F(PrepareResumeTest, KilledAgainAndAgain) {
  Content straight = expected();
  int kills = 0;
  while (run_and_kill(options("data", 2), 60)) {  // each time it gets a little further
    ++kills;
    ASSERT_LT(kills, 100);
  }
  EXPECT_GE(kills, 2);
  EXPECT_EQ(content("data"), straight);
}

TEST_F(PrepareResumeTest, SaysThatItGoesOn) {
  std::vector<std::string> notes;
  PrepareHooks hooks = {.note = [&](const std::string& note) { notes.push_back(note); }};
  int batches = 0;
  hooks.stop = [&] { return ++batches > 60; };
  expect_user_error([&] { prepare(options("data"), hooks); },
                    {"stopped", "The same command goes on", "complete shard", kUnfinishedFolder});
  EXPECT_TRUE(notes.empty());
  hooks.stop = nullptr;
  prepare(options("data"), hooks);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("going on after"), std::string::npos) << notes[0];
}

TEST_F(PrepareResumeTest, BeginsAnewWithOtherOptionsOrInput) {
  std::string note;
  PrepareHooks hooks = {.note = [&](const std::string& text) { note = text; }};
  ASSERT_TRUE(run_and_kill(options("data"), 100));
  PrepareOptions other = options("data");
  other.shard_tokens = 120;
  prepare(other, hooks);
  EXPECT_NE(note.find("--shard-tokens is 120, was 100; beginning anew"), std::string::npos) << note;
  EXPECT_EQ(read_token_shard_index(folder_ / "data").train.shards[0].tokens, 120);

  ASSERT_TRUE(run_and_kill(options("data"), 100));
  write_file_quickly(folder_ / "in/c.txt", test::tiny_text(700, 3));
  prepare(options("data"), hooks);
  EXPECT_NE(note.find("c.txt has changed; beginning anew"), std::string::npos) << note;
  EXPECT_EQ(content("data"), expected());
}

TEST_F(PrepareResumeTest, BeginsAnewWithoutItsShards) {
  std::string note;
  ASSERT_TRUE(run_and_kill(options("data"), 100));
  fs::resize_file(folder_ / "data" / kUnfinishedFolder / "tokens_000000.bin", 1030);
  prepare(options("data"), {.note = [&](const std::string& text) { note = text; }});
  EXPECT_NE(note.find("tokens_000000.bin is damaged or gone; beginning anew"), std::string::npos) << note;
  EXPECT_EQ(content("data"), expected());
}

/// Sealed, so that it looks like ours.
TEST_F(PrepareResumeTest, BeginsAnewWhereThePlaceIsOutsideTheInput) {
  for (int64_t file : {int64_t(3), int64_t(1'000'000), int64_t(1) << 58}) {
    for (bool is_place : {true, false}) {
      std::string note;
      ASSERT_TRUE(run_and_kill(options("data"), 100));
      fs::path work = folder_ / "data" / kUnfinishedFolder;
      PrepareJournal journal = *read_journal(work);
      (is_place ? journal.place.file : journal.files.size) = file + !is_place;
      write_journal(journal, work);
      prepare(options("data"), {.note = [&](const std::string& text) { note = text; }});
      EXPECT_NE(note.find("of more than the 3 input files; beginning anew"), std::string::npos) << note;
      EXPECT_EQ(content("data"), expected());
      fs::remove_all(folder_ / "data"), fs::remove_all(folder_ / "straight");
    }
  }
}

/// Every file that an earlier run has kept, damaged in the middle: found whenever it would have been used.
TEST_F(PrepareResumeTest, BeginsAnewWhereItsFilesAreDamaged) {
  shard_tokens_ = 300;  // there are two runs for each file
  Content straight = expected();
  std::vector<std::string> names;
  fs::path work = folder_ / "data" / kUnfinishedFolder;
  for (int moment : {100, -1, -5}) {  // while it encodes, before its files get their names, and when some have them
    auto interrupt = [&] {
      fs::remove_all(folder_ / "data");
      if (moment > 0) return void(run_and_kill(options("data"), moment));
      auto stop = [left = -moment](const PrepareProgress& progress) mutable {
        if (progress.phase == "moving the files to their places" && --left == 0) throw Killed();
      };
      EXPECT_THROW(prepare(options("data"), {.progress = stop}), Killed);
    };
    interrupt();
    names.clear();
    for (const auto& entry : fs::recursive_directory_iterator(work))
      if (entry.is_regular_file() && entry.file_size() > 0) names.push_back(entry.path().lexically_relative(work));
    EXPECT_GT(names.size(), 6u);
    for (const std::string& name : names) {
      interrupt();
      std::string journal = read_file(work / "journal.json"), bytes = read_file(work / name), note;
      bytes[bytes.size() / 2] ^= 2;
      write_file_quickly(work / name, bytes);
      prepare(options("data"), {.note = [&](const std::string& text) { note = text; }});
      EXPECT_EQ(content("data"), straight) << name;
      bool is_named = name == "journal.json" || journal.find("\"from\": \"" + name) != std::string::npos;
      if (name.ends_with(".tmp") || (moment < 0 && !is_named)) continue;
      EXPECT_NE(note.find("damaged"), std::string::npos) << name << ": " << note;
    }
  }
}

/// A terabyte of nothing, which nobody waits for.
TEST_F(PrepareResumeTest, BeginsAnewWhereAFileIsTooLargeToBeItsOwn) {
  Content straight = expected();
  for (int moves : {0, 1}) {  // while it encodes, and before its files get their names
    auto stop = [&, left = 100](const PrepareProgress& progress) mutable {
      if (moves > 0 ? progress.phase == "moving the files to their places" : left-- == 0) throw Killed();
    };
    EXPECT_THROW(prepare(options("data"), {.progress = stop}), Killed);
    fs::resize_file(folder_ / "data" / kUnfinishedFolder / "tokens_000000.bin", uintmax_t(1) << 40);
    std::string note;
    prepare(options("data"), {.note = [&](const std::string& text) { note = text; }});
    EXPECT_NE(note.find("tokens_000000.bin is damaged or gone; beginning anew"), std::string::npos) << note;
    EXPECT_EQ(content("data"), straight);
    fs::remove_all(folder_ / "data");
  }
}

TEST_F(PrepareResumeTest, ReplacesOnlyShardsOfTheDataBefore) {
  prepare(options("data"));
  std::string index = read_file(folder_ / "data/index.json");
  size_t at = index.find("val_000000.bin");
  ASSERT_NE(at, std::string::npos);
  write_file_quickly(folder_ / "data/my_thesis.bin", "mine");
  write_file_quickly(folder_ / "data/index.json", index.replace(at, 14, "my_thesis.bin"));
  PrepareOptions other = options("data");
  other.val_fraction = 0;
  prepare(other);
  EXPECT_EQ(read_file(folder_ / "data/my_thesis.bin"), "mine");
}

TEST_F(PrepareResumeTest, RefusesInputThatChangesMeanwhile) {
  int moment = 0;
  auto change = [&](const PrepareProgress&) {
    if (++moment == 80) write_file_quickly(folder_ / "in/a.txt", "other text");
  };
  expect_user_error([&] { prepare(options("data"), {.progress = change}); }, {"a.txt has changed", "run the same"});
  EXPECT_FALSE(fs::exists(folder_ / "data/index.json"));
  prepare(options("data"));
  EXPECT_EQ(content("data"), expected());
}

TEST_F(PrepareResumeTest, AFaultInTheMiddleKeepsWhatIsDone) {
  Content straight = expected();
  std::string good = read_file(folder_ / "in/b.jsonl");
  std::string bad = good.substr(0, good.size() - 20) + "oops\n";
  PrepareOptions given = options("data");
  given.vocab = folder_ / "straight";
  write_file_quickly(folder_ / "in/b.jsonl", bad);
  expect_user_error([&] { prepare(given); }, {"b.jsonl line 40", "The same command goes on", "complete shards"});
  EXPECT_FALSE(fs::exists(folder_ / "data/index.json"));
}

TEST_F(PrepareResumeTest, AFaultBeforeAnythingIsDoneLeavesNothing) {
  write_file_quickly(folder_ / "in/a.jsonl", "oops\n");
  expect_user_error([&] { prepare(options("data")); }, {"a.jsonl line 1"});
  EXPECT_FALSE(fs::exists(folder_ / "data"));
}

TEST_F(PrepareResumeTest, ReadsAPipeTwice) {
  std::string text = test::tiny_text(3000);
  write_file_quickly(folder_ / "text", text);
  PrepareOptions options = this->options("data");
  FileDescriptor input(::open((folder_ / "text").c_str(), O_RDONLY));
  options.inputs = {"-"};
  options.sources.stdin_fd = input.get();
  prepare(options);
  EXPECT_EQ(load_tokenizer(folder_ / "data").decode(tokens_of(folder_ / "data")), text);
  EXPECT_FALSE(fs::exists(folder_ / "data" / kUnfinishedFolder));
}

TEST_F(PrepareResumeTest, APipeBeginsAnew) {
  std::string text = test::tiny_text(3000), note;
  write_file_quickly(folder_ / "text", text);
  prepare(options("vocab"));
  PrepareOptions options = this->options("data");
  options.inputs = {"-"};
  options.vocab = folder_ / "vocab";
  FileDescriptor first(::open((folder_ / "text").c_str(), O_RDONLY));
  options.sources.stdin_fd = first.get();
  ASSERT_TRUE(run_and_kill(options, 15));
  FileDescriptor second(::open((folder_ / "text").c_str(), O_RDONLY));
  options.sources.stdin_fd = second.get();
  prepare(options, {.note = [&](const std::string& told) { note = told; }});
  EXPECT_NE(note.find("cannot be read a second time; beginning anew"), std::string::npos) << "note: " << note;
  EXPECT_EQ(load_tokenizer(folder_ / "data").decode(tokens_of(folder_ / "data")), text);
}

}  // namespace
}  // namespace tokamak
