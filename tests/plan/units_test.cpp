#include "plan/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/random.h"

namespace tokamak {
namespace {

TEST(Percentages, AddUpAsTheyArePrinted) {
  EXPECT_EQ(percentages(std::vector<double>{1, 1, 1}), (std::vector<double>{33.4, 33.3, 33.3}));
  EXPECT_EQ(percentages(std::vector<double>{5, 0, 5}), (std::vector<double>{50, 0, 50}));
  EXPECT_EQ(percentages(std::vector<double>{0, 0}), (std::vector<double>{0, 0}));
  EXPECT_TRUE(percentages({}).empty());
}

// Each is the exact share or a neighbour of it, and of tenths there are a thousand.
TEST(Percentages, OfRandomParts) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    std::vector<double> parts;
    for (uint64_t i = 0; i < 1 + seed % 40; ++i) parts.push_back(uniform_float(philox4x32(seed, i)[0]) + 1e-3);
    double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    std::vector<double> shares = percentages(parts);
    int64_t tenths = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_LT(std::fabs(shares[i] - 100 * parts[i] / sum), 0.1) << seed;
      tenths += std::llround(10 * shares[i]);
    }
    EXPECT_EQ(tenths, 1000) << seed;
  }
}

}  // namespace
}  // namespace tokamak
