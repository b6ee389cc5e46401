#include "data/visible_text.h"

#include <gtest/gtest.h>

#include "tests/data/small_vocabulary.h"

namespace tokamak {
namespace {

TEST(VisibleText, IdsWithoutATokenAreShown) {
  Tokenizer tokenizer(small_vocabulary({{"a", "b"}}));
  ASSERT_EQ(tokenizer.vocab_size(), 258);
  EXPECT_EQ(visible_text(tokenizer, std::vector<int32_t>{256, 'c', 258, 'd', 300}), "abc<|id 258|>d<|id 300|>");
  EXPECT_EQ(visible_text(tokenizer, {}), "");
}

}  // namespace
}  // namespace tokamak
