#include "graph/reduction.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Reduction, IsReadByTheNameThatItPrints) {
  for (Reduction reduction : {Reduction::kSum, Reduction::kMax})
    EXPECT_EQ(parse_reduction(reduction_name(reduction)), reduction);
}

TEST(Reduction, RefusesOtherNames) { EXPECT_THROW(parse_reduction("mean"), UserError); }

}  // namespace
}  // namespace tokamak
