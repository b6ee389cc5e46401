#include "ops/dropout.h"
#include "base/dropout_random.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs attrs(double p, int64_t stream = 0) { return {{"p", p}, {"stream", stream}}; }

Attrs part_attrs(Attrs all, std::vector<int64_t> place) {
  all.set("place", std::move(place));
  return all;
}

Attrs matrix_attrs(double p, std::vector<int64_t> matrix) {
  Attrs all = attrs(p, 2);
  all.set("matrix", std::move(matrix));
  return all;
}

}  // namespace

std::vector<OpCase> dropout_cases() {
  return {
      {"Matrix", &op::dropout, {f32({7, 9}), rng()}, attrs(0.3, 5)},
      {"Batch", &op::dropout, {f32({2, 3, 5}), rng()}, attrs(0.1)},
      {"Nothing", &op::dropout, {f32({7}), rng()}, attrs(0.0)},
      {"Long", &op::dropout, {f32({5003}), rng()}, attrs(0.5)},
      {"Bf16", &op::dropout, {bf16({7, 9}), rng()}, attrs(0.25), 1e-2},
      {"Matrices", &op::dropout, {f32({2, 3, 20, 33}), rng()}, matrix_attrs(0.25, {20, 33})},
      {"Part", &op::dropout, {f32({3, 4, 16}), rng_of_part()}, part_attrs(attrs(0.5), {2, 64, 0, 2, 192, 0})},
      {"ShortPieces", &op::dropout, {f32({3, 4, 5}), rng_of_part()}, part_attrs(attrs(0.5), {2, 5, 0, 3, 40, 0})},
      {"MirroredPart", &op::dropout, {f32({6, 4, 8}), rng_of_part()}, part_attrs(attrs(0.5), {4, 16, 1, 2, 96, 0})},
      {"MatricesPart",
       &op::dropout,
       {f32({2, 10, 33}), rng_of_part()},
       part_attrs(matrix_attrs(0.5, {20, 33}), {2, 330, 0, 2, 660, 0})},
  };
}

namespace {

TEST(Dropout, KeepsTheMeanAndScalesWhatItKeeps) {
  constexpr int64_t n = 40000;
  auto y = evaluate({"", &op::dropout, {f32({n}), rng()}, attrs(0.2)}, {std::vector<double>(n, 1.0), {3, 4}})[0];
  double dropped = 0;
  for (double v : y.data) {
    EXPECT_TRUE(v == 0 || v == dropout_factor(0.2)) << v;
    dropped += v == 0;
  }
  EXPECT_NEAR(dropped / n, 0.2, 0.01);
}

TEST(Dropout, RefusesWrongProbabilitiesAndRng) {
  expect_refused({"", &op::dropout, {f32({7}), rng()}, attrs(1.0)}, "expected a probability in [0, 1), got 1");
  expect_refused({"", &op::dropout, {f32({7}), rng()}, attrs(-0.5)}, "got -0.5");
  expect_refused({"", &op::dropout, {f32({7}), f32({2})}, attrs(0.5)},
                 "expected rng to be i32[2] (seed, step), got f32[2]");
  expect_refused({"", &op::dropout, {f32({7, 6}), rng()}, matrix_attrs(0.5, {6, 6})},
                 "expected a matrix (rows, columns) that divides [7,6], got [6,6]");
}

}  // namespace
}  // namespace tokamak::test
