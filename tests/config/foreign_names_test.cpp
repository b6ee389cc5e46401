#include "config/foreign_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "config/assignment.h"
#include "config/config.h"
#include "config/visit.h"
#include "tests/config/test_options.h"

namespace tokamak {
namespace {

std::vector<std::string> keys_of_runs() {
  static RunConfig run;
  return option_names(fields_of(run));
}

const std::vector<std::string> kGenerate = {"prompt", "tokens", "samples", "temperature"};

std::string hint(std::string_view typed) { return foreign_hint(typed, keys_of_runs()); }

// An option that was renamed would be recommended no more.
TEST(ForeignNames, OursAreKeysOfRunsOrOfGenerate) {
  std::vector<std::string> known = keys_of_runs();
  known.insert(known.end(), kGenerate.begin(), kGenerate.end());
  std::set<std::string_view> seen;
  for (const ForeignName& row : foreign_names()) {
    EXPECT_NE(std::ranges::find(known, row.ours), known.end()) << row.ours;
    EXPECT_TRUE(seen.insert(row.ours).second) << row.ours << " has two rows";
  }
}

TEST(ForeignNames, HabitualNamesAreKnown) {
  EXPECT_EQ(hint("batch_size"), "; that is 'train.batch' here: sequences of a micro-batch, of all ranks together");
  EXPECT_EQ(hint("model.n_layer"), "; that is 'model.layers' here");
  EXPECT_EQ(hint("optimizer.learning_rate"), "; that is 'optimizer.lr' here");
  EXPECT_EQ(hint("mesh.dp"), "; that is 'mesh.data' here: ranks that the batch is divided over");
  EXPECT_EQ(hint("micro-batch-size"), hint("batch_size")) << "hyphens and underscores are one";
  EXPECT_EQ(hint("training.seq_len"), "; that is 'model.context' here");
  EXPECT_EQ(hint("-z"), "; that is 'mesh.zero' here: DDP: 0, a distributed optimizer: 1, FSDP: 3");
  EXPECT_EQ(hint("z"), "") << "llm.c's options have one dash";
  EXPECT_EQ(hint("stepz"), "");
}

TEST(ForeignNames, TheWholeNameCountsBeforeItsLastPart) {
  EXPECT_EQ(hint("model.name"), "; that is 'model.family' here");
  EXPECT_EQ(hint("checkpoint.enable"), "; that is 'train.resume' here: on by itself");
  EXPECT_EQ(hint("enable"), "") << "of several rows";
}

TEST(ForeignNames, OnlyOptionsOfTheCommandAreNamed) {
  EXPECT_EQ(foreign_hint("max_new_tokens", kGenerate), "; that is 'tokens' here");
  EXPECT_EQ(hint("max_new_tokens"), "") << "a run generates nothing";
  EXPECT_EQ(foreign_hint("batch_size", kGenerate), "");
}

TEST(ForeignNames, BothTablesHaveEveryName) {
  std::string text = foreign_names_text(), markdown = foreign_names_markdown();
  for (const ForeignName& row : foreign_names()) {
    EXPECT_NE(text.find(std::string(row.ours) + " "), std::string::npos) << row.ours;
    EXPECT_NE(markdown.find("| `" + std::string(row.ours) + "` |"), std::string::npos) << row.ours;
  }
  EXPECT_NE(text.find("nanoGPT: batch_size; llm.c: -b;"), std::string::npos) << text;
  EXPECT_NE(markdown.find("`training.local_batch_size`, `training.batch_size`"), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 101u) << line;
}

}  // namespace
}  // namespace tokamak
