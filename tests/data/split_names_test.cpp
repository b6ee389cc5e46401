#include "data/split_names.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

TEST(SplitNames, AreWordsOfAName) {
  for (const char* name : {"train-00000-of-00001.jsonl", "fineweb_train_000001.bin", "c4-train.00000-of-01024.json.gz",
                           "Training.txt", "data/train/00.txt", "train/validated.txt"})
    EXPECT_EQ(split_of(name), "train") << name;
  for (const char* name : {"validation-0.jsonl", "val.bin", "x_dev.txt", "valid/1.txt"})
    EXPECT_EQ(split_of(name), "validation") << name;
  EXPECT_EQ(split_of("test.txt"), "test");
  EXPECT_EQ(split_of("train/test.txt"), "test") << "the nearest";
  for (const char* name : {"trains.txt", "contest.txt", "values.bin", "latest/a.txt", "text.txt"})
    EXPECT_EQ(split_of(name), "") << name;
}

TEST(SplitNames, FilesOfOneAreKept) {
  using Files = std::vector<std::filesystem::path>;
  TemporaryFolder folder;
  std::string input = (folder / "test_of_training").string();
  std::filesystem::create_directories(input);
  auto of = [&](const char* name) { return std::filesystem::path(input) / name; };
  Files files = {of("data/train-0.csv"), of("data/validation-0.csv"), of("train/1.csv"), of("notes.txt")};
  Files train = files;
  EXPECT_EQ(keep_split(train, "train", input), 2u);
  EXPECT_EQ(train, (Files{of("data/train-0.csv"), of("train/1.csv")}));
  expect_user_error([&] { keep_split(files, "test", input); },
                    {input, "say test", "1 without a split, 2 of train, 1 of validation", "--split"});
}

TEST(SplitNames, ToldWhereSeveralArePooled) {
  std::string warning = pooled_splits_warning({"d/a.txt", "d/test.txt", "d/train-0.txt", "d/train-1.txt", "d/val.txt"});
  for (const char* piece :
       {"1 of test (d/test.txt)", "2 of train (d/train-0.txt, ...)", "1 of validation (d/val.txt)", "data.val_path"})
    EXPECT_NE(warning.find(piece), std::string::npos) << warning;
  EXPECT_NE(pooled_splits_warning({"x/train/a.txt", "x/val/a.txt"}), "");
  EXPECT_EQ(pooled_splits_warning({}), "");
  EXPECT_EQ(pooled_splits_warning({"train-0.txt", "train-1.txt", "a.txt"}), "");
  EXPECT_EQ(pooled_splits_warning({"/home/test/train.txt", "/home/test/a.txt"}), "") << "what all paths have";
  EXPECT_EQ(pooled_splits_warning({"/home/test/train.txt"}), "");
}

}  // namespace
}  // namespace tokamak
