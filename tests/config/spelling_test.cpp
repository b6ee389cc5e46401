#include "config/spelling.h"

#include <gtest/gtest.h>

#include "config/help.h"

namespace tokamak {
namespace {

TEST(Spelling, HyphensButInSections) {
  EXPECT_EQ(option_spelling("vocab_size"), "vocab-size");
  EXPECT_EQ(option_spelling("model.tie_weights"), "model.tie_weights");
}

TEST(Spelling, IsThatOfHelpAndDocs) {
  int64_t tokens = 3;
  Field field{.key = "shard_tokens", .help = "tokens in one shard", .section_help = "", .target = &tokens, .rule = {}};
  EXPECT_NE(help_text({field}).find("--shard-tokens=N"), std::string::npos) << help_text({field});
  EXPECT_NE(help_markdown({field}).find("`--shard-tokens`"), std::string::npos) << help_markdown({field});
}

}  // namespace
}  // namespace tokamak
