#include "data/prepare_journal.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/file.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

PreparePlan small_plan() {
  return {.options = {{"--field", "text"}, {"--separator", "\"x\"\n"}},
          .inputs = {{{"a.txt", 3, "xxh64:1"}, "-11"}, {{"b.txt", 4, "xxh64:2"}, "12"}}};
}

TEST(PrepareJournal, ComesBackAsItWas) {
  TemporaryFolder folder;
  EXPECT_FALSE(read_journal(folder.path()));
  PrepareJournal journal = {
      .tokenizer = {{"vocab.bpe", "xxh64:4"}},
      .shards = {{"tokens_000000.bin", 5, 4, "xxh64:3"}},
      .text_bytes = 6,
      .documents = {7, "xxh64:5"},
      .files = {8, "xxh64:6"},
      .place = {.file = 1, .part = 2, .tokens = 3, .separate = true},
      .moves = {{"tokens_000000.bin", "train_000000.bin", "xxh64:7"}, {"index.json", "index.json", "xxh64:8"}}};
  write_journal(journal, folder.path());
  auto read = read_journal(folder.path());
  ASSERT_TRUE(read);
  ASSERT_EQ(read->shards.size(), 1u);
  EXPECT_EQ(read->shards[0].file, "tokens_000000.bin");
  EXPECT_EQ(read->shards[0].tokens, 5);
  EXPECT_EQ(read->shards[0].max_token, 4);
  EXPECT_EQ(read->shards[0].checksum, "xxh64:3");
  EXPECT_EQ(read->text_bytes, 6);
  EXPECT_EQ(read->tokenizer, journal.tokenizer);
  EXPECT_EQ(read->documents.size, 7);
  EXPECT_EQ(read->documents.checksum, "xxh64:5");
  EXPECT_EQ(read->files.size, 8);
  EXPECT_EQ(read->place.file, 1);
  EXPECT_EQ(read->place.part, 2);
  EXPECT_EQ(read->place.tokens, 3);
  EXPECT_TRUE(read->place.separate);
  ASSERT_EQ(read->moves.size(), 2u);
  EXPECT_EQ(read->moves[0].from, "tokens_000000.bin");
  EXPECT_EQ(read->moves[0].to, "train_000000.bin");
  EXPECT_EQ(read->moves[0].checksum, "xxh64:7");
}

TEST(PrepareJournal, NamesOnlyFilesOfPrepare) {
  TemporaryFolder folder;
  auto is_read = [&](const std::string& from, const std::string& to) {
    write_journal({.moves = {{from, to, ""}, {"index.json", "index.json", ""}}}, folder.path());
    return read_journal(folder.path()).has_value();
  };
  EXPECT_TRUE(is_read("tokenizer/vocab.bpe", "vocab.bpe"));
  EXPECT_TRUE(is_read("val_000000.bin", "val_000000.bin"));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"payload", "/home/x/.bashrc"},
           {"tokens_000000.bin", "../train_000000.bin"},
           {"tokens_000000.bin", "/train_000000.bin"},
           {"../tokens_000000.bin", "train_000000.bin"},
           {"/etc/passwd", "train_000000.bin"},
           {"tokens_000000.bin", "notes.txt"},
           {"tokens_000000.bin", "train_1/../../x.bin"},
           {"tokenizer/../../vocab.bpe", "vocab.bpe"},
           {"tokens_000000.bin", "index.json"},
       })
    EXPECT_FALSE(is_read(from, to)) << from << " to " << to;
  write_journal({.shards = {{"../tokens_000000.bin", 5, 4, ""}}}, folder.path());
  EXPECT_FALSE(read_journal(folder.path()));
  write_journal({.moves = {{"val_000000.bin", "val_000000.bin", ""}}}, folder.path());
  EXPECT_FALSE(read_journal(folder.path()));
}

TEST(PrepareJournal, NoticesEveryChangedDigit) {
  TemporaryFolder folder;
  write_journal({.shards = {{"tokens_000000.bin", 5, 4, "xxh64:3"}}, .place = {.file = 1, .part = 2, .tokens = 3}},
                folder.path());
  fs::path path = folder / "journal.json";
  std::string good = read_file(path);
  int digits = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(good[i]))) continue;
    std::string bad = good;
    bad[i] = bad[i] == '9' ? '8' : char(bad[i] + 1);
    write_file_quickly(path, bad);
    EXPECT_FALSE(read_journal(folder.path())) << "at byte " << i;
    ++digits;
  }
  EXPECT_GT(digits, 20);
}

TEST(PrepareJournal, WhatIsDamagedIsNoJournal) {
  TemporaryFolder folder;
  write_journal({}, folder.path());
  write_plan(small_plan(), folder.path());
  for (const char* name : {"journal.json", "plan.json"}) {
    std::string good = read_file(folder / name);
    for (size_t size = 0; size + 2 < good.size(); size += 7) {
      write_file_atomic(folder / name, good.substr(0, size));
      EXPECT_FALSE(name[0] == 'j' ? read_journal(folder.path()).has_value() : read_plan(folder.path()).has_value());
    }
    write_file_atomic(folder / name, "{\"version\": 99}");
    EXPECT_FALSE(name[0] == 'j' ? read_journal(folder.path()).has_value() : read_plan(folder.path()).has_value());
  }
}

TEST(PreparePlan, TellsWhatDiffers) {
  TemporaryFolder folder;
  PreparePlan plan = small_plan();
  write_plan(plan, folder.path());
  ASSERT_TRUE(read_plan(folder.path()));
  PreparePlan before = *read_plan(folder.path());
  EXPECT_EQ(plan_difference(before, plan), "");
  plan.options["--field"] = "body";
  EXPECT_EQ(plan_difference(before, plan), "--field is body, was text");
  plan = small_plan();
  plan.inputs[1].modified = "13";
  EXPECT_EQ(plan_difference(before, plan), "b.txt has changed");
  plan.inputs[0].file.checksum = "xxh64:9";
  EXPECT_EQ(plan_difference(before, plan), "a.txt has changed");
  plan = small_plan();
  plan.inputs[1].file.path = "c.txt";
  EXPECT_EQ(plan_difference(before, plan), "the input has c.txt where it had b.txt");
  plan.inputs.pop_back();
  EXPECT_EQ(plan_difference(before, plan), "there are 1 input files, there were 2");
}

TEST(PreparePlan, SeesAChangeThatTheFingerprintMayMiss) {
  TemporaryFolder folder;
  write_file_atomic(folder / "a.txt", "abc");
  PreparePlan::Input input = plan_input(folder / "a.txt");
  EXPECT_EQ(plan_input(folder / "a.txt"), input);
  fs::last_write_time(folder / "a.txt", fs::last_write_time(folder / "a.txt") + std::chrono::seconds(1));
  EXPECT_NE(plan_input(folder / "a.txt"), input);
}

}  // namespace
}  // namespace tokamak
