#include "data/prepare_journal.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

PreparePlan small_plan() {
  return {.options = {{"--field", "text"}, {"--separator", "\"x\"\n"}},
          .inputs = {{{"a.txt", 3, "xxh64:1"}, 11}, {{"b.txt", 4, "xxh64:2"}, 12}}};
}

TEST(PrepareJournal, ComesBackAsItWas) {
  TemporaryFolder folder;
  EXPECT_FALSE(read_journal(folder.path()));
  PrepareJournal journal = {.shards = {{"tokens_000000.bin", 5, 4, "xxh64:3"}},
                            .text_bytes = 6,
                            .documents = 7,
                            .files = 8,
                            .place = {.file = 1, .part = 2, .tokens = 3, .separate = true},
                            .moves = {{"a", "b"}, {"index.json", "index.json"}}};
  write_journal(journal, folder.path());
  auto read = read_journal(folder.path());
  ASSERT_TRUE(read);
  ASSERT_EQ(read->shards.size(), 1u);
  EXPECT_EQ(read->shards[0].file, "tokens_000000.bin");
  EXPECT_EQ(read->shards[0].tokens, 5);
  EXPECT_EQ(read->shards[0].max_token, 4);
  EXPECT_EQ(read->shards[0].checksum, "xxh64:3");
  EXPECT_EQ(read->text_bytes, 6);
  EXPECT_EQ(read->documents, 7);
  EXPECT_EQ(read->files, 8);
  EXPECT_EQ(read->place.file, 1);
  EXPECT_EQ(read->place.part, 2);
  EXPECT_EQ(read->place.tokens, 3);
  EXPECT_TRUE(read->place.separate);
  ASSERT_EQ(read->moves.size(), 2u);
  EXPECT_EQ(read->moves[0].from, "a");
  EXPECT_EQ(read->moves[0].to, "b");
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
  plan.inputs[1].modified = 13;
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
