#include "data/marked_tokens.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

using namespace tokamak;

TEST(MarkedTokens, KeepTheirIds) {
  for (int32_t id : {0, 1, 50256, std::numeric_limits<int32_t>::max()}) {
    EXPECT_TRUE(is_learned(id));
    EXPECT_FALSE(is_learned(with_mark(id)));
    EXPECT_EQ(id_of(with_mark(id)), id);
    EXPECT_EQ(id_of(id), id);
  }
}

TEST(MarkedTokens, LoseTheirMarksTogether) {
  std::vector<int32_t> tokens = {3, with_mark(4), with_mark(0), 5};
  remove_marks(tokens);
  EXPECT_EQ(tokens, (std::vector<int32_t>{3, 4, 0, 5}));
}
