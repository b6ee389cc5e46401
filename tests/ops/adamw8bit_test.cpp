#include "ops/adamw8bit.h"

#include "ops/adamw.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

Attrs attrs(double decay) { return {{"beta1", 0.9}, {"beta2", 0.95}, {"decay", decay}, {"eps", 1e-8}}; }

CaseInput codes(Shape shape) { return {moment_codes(shape), 0, 256}; }
CaseInput scales(Shape shape) { return {moment_scales(shape), 0.1, 1}; }

std::vector<CaseInput> inputs(Shape shape, double scale = 0.7, DType grad = DType::kF32) {
  return {f32(shape),    {{grad, shape}, -1, 1}, codes(shape),          scales(shape), codes(shape),
          scales(shape), f32({}, 0.01, 0.02),    f32({}, scale, scale), f32({}, 3, 3)};
}

std::vector<CaseInput> zeros(Shape shape) {
  std::vector<CaseInput> all = inputs(std::move(shape));
  for (size_t i : {1, 3, 5}) all[i].low = all[i].high = 0;
  return all;
}

}  // namespace

std::vector<OpCase> adamw8bit_cases() {
  return {
      {"Rows", &op::adamw8bit, inputs({3, 512}), attrs(0.1)},
      {"ShortBlocks", &op::adamw8bit, inputs({5, 300}), attrs(0)},
      {"OneBlock", &op::adamw8bit, inputs({7}), attrs(0)},
      {"Many", &op::adamw8bit, inputs({130, 256}), attrs(0.1)},
      {"LowGradient", &op::adamw8bit, inputs({3, 100}, 0.7, DType::kBF16), attrs(0.1)},
      {"Zeros", &op::adamw8bit, zeros({3, 100}), attrs(0.1)},
      {"Skipped", &op::adamw8bit, inputs({3, 100}, 0), attrs(0.1), 0},
  };
}

namespace {

TEST(Adamw8bit, BlocksDivideRows) {
  EXPECT_EQ(block_length(768), 256);
  EXPECT_EQ(block_length(2304), 256);
  EXPECT_EQ(block_length(100), 100);
  EXPECT_EQ(block_length(300), 150);
  EXPECT_EQ(block_length(257), 1) << "a prime";
  EXPECT_EQ(to_string(moment_codes({4, 768})), "u8[4,3,256]");
  EXPECT_EQ(to_string(moment_scales({4, 768})), "f32[4,3]");
}

// From moments of zero the parameter moves as AdamW's: they are rounded only to be kept.
TEST(Adamw8bit, FirstStepIsThatOfAdamw) {
  std::vector<double> param{1, -2, 0.5, 3}, grad{1e-3, -50, 0, 2}, zeros(4, 0.0), one{1}, lr{0.1};
  auto low =
      evaluate({"", &op::adamw8bit, inputs({4}), attrs(0.5)}, {param, grad, zeros, {0}, zeros, {0}, lr, one, one});
  std::vector<CaseInput> plain{f32({4}), f32({4}), f32({4}), f32({4}), f32({}), f32({}), f32({})};
  auto full = evaluate({"", &op::adamw, plain, attrs(0.5)}, {param, grad, zeros, zeros, lr, one, one});
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(low[0][i], full[0][i], 1e-12);
  EXPECT_NEAR(low[2][0], 0.1 * 50, 1e-12) << "the largest size in the block";
  EXPECT_NEAR(low[4][0], 0.05 * 2500, 1e-12);
}

TEST(Adamw8bit, ABlockOfZerosStaysZero) {
  std::vector<double> zeros(3, 0.0);
  auto out = evaluate({"", &op::adamw8bit, inputs({3}), attrs(0)},
                      {{1, 2, 3}, zeros, zeros, {0}, zeros, {0}, {0.1}, {1}, {1}});
  EXPECT_EQ(out[0].data, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(out[2].data, std::vector<double>{0});
}

TEST(Adamw8bit, ScaleZeroLeavesEverythingWhateverTheGradient) {
  auto out = evaluate({"", &op::adamw8bit, inputs({3}), attrs(0.5)},
                      {{1, 2, 3}, {HUGE_VAL, std::nan(""), 1}, {4, 5, 6}, {7}, {7, 8, 9}, {3}, {0.1}, {0}, {1}});
  EXPECT_EQ(out[0].data, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(out[1].data, (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(out[2].data, (std::vector<double>{7}));
  EXPECT_EQ(out[3].data, (std::vector<double>{7, 8, 9}));
  EXPECT_EQ(out[4].data, (std::vector<double>{3}));
}

TEST(Adamw8bit, RefusesWhatDoesNotFit) {
  auto refused = [](size_t input, CaseInput other, const char* piece) {
    std::vector<CaseInput> all = inputs({3, 512});
    all[input] = std::move(other);
    expect_refused({"", &op::adamw8bit, all, attrs(0)}, piece);
  };
  refused(0, bf16({3, 512}), "expected param in f32");
  refused(1, f32({512, 3}), "expected a float gradient of shape [3,512], got f32[512,3]");
  refused(2, f32({3, 2, 256}), "expected codes in u8 with one dim more than f32[3,512], got f32[3,2,256]");
  refused(2, codes({3, 256}), "expected codes and scales of blocks of f32[3,512], got u8[3,1,256]");
  refused(3, f32({3, 1}), "expected codes and scales of blocks of");
  refused(4, codes({3, 256}), "expected v as m, u8[3,2,256] and f32[3,2], got u8[3,1,256]");
}

}  // namespace
}  // namespace tokamak::test
