#include "data/prepare_names.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(PrepareNames, KnowsShards) {
  EXPECT_EQ(shard_name("val", 12), "val_000012.bin");
  EXPECT_TRUE(is_shard_name(shard_name("train", 12'345'678)));
  for (const char* name :
       {"train_.bin", "train_1x.bin", "train_1.bin.tmp", "../train_1.bin", "train_1", "tokens_1.bin"})
    EXPECT_FALSE(is_shard_name(name)) << name;
}

TEST(PrepareNames, KnowsWhatIsUnfinished) {
  for (const char* name :
       {"lock", "plan.json.0123456789abcdef.tmp", "journal.json", "tokens_000000.bin.0123456789abcdef.tmp",
        "tokenizer/vocab.bpe", "val_000000.bin.tmp", "pipes/1", "pipes/1/any name", "replaced/index.json"})
    EXPECT_TRUE(is_unfinished_name(name)) << name;
  for (const char* name : {"thesis.txt", "plan.json.x.tmp", "tokenizer/mine", "pipes/x", "pipes/1/a/b", "a/b", "lock/x",
                           "replaced/vocab.bpe"})
    EXPECT_FALSE(is_unfinished_name(name)) << name;
}

TEST(PrepareNames, KnowsWhatGoesWhere) {
  EXPECT_TRUE(may_move("tokens_000003.bin", "train_000003.bin"));
  EXPECT_TRUE(may_move("val_000000.bin", "val_000000.bin"));
  EXPECT_TRUE(may_move("tokenizer/encoder.json", "encoder.json"));
  EXPECT_TRUE(may_move("index.json", "index.json"));
  EXPECT_FALSE(may_move("val_000000.bin", "train_000000.bin"));
  EXPECT_FALSE(may_move("index.json", "encoder.json"));
  EXPECT_FALSE(may_move("tokenizer/encoder.json", "../encoder.json"));
}

}  // namespace
}  // namespace tokamak
