#include "ops/multi_cast.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs to(const char* type) { return {{"to", std::string(type)}}; }

}  // namespace

std::vector<OpCase> multi_cast_cases() {
  std::vector<CaseInput> many{f32({3, 5}), f32({}), f32({70, 1001}), f32({1}), f32({2, 3, 4}, -1e5, 1e5)};
  std::vector<CaseInput> mixed{f32({70}), bf16({9}), {{DType::kF16, {5, 7}}}};
  return {
      {"ToBf16", &op::multi_cast, many, to("bf16"), 0, nullptr, false},
      {"ToF16", &op::multi_cast, many, to("f16"), 0, nullptr, false},
      {"ToF32", &op::multi_cast, {f32({3, 5}), f32({7})}, to("f32"), 0},
      {"Mixed", &op::multi_cast, mixed, to("bf16"), 0, nullptr, false},
      {"MixedToF32", &op::multi_cast, mixed, to("f32"), 0},
      {"One", &op::multi_cast, {f32({1000})}, to("bf16"), 0, nullptr, false},
  };
}

namespace {

TEST(MultiCast, RoundsTiesToEven) {
  auto out = evaluate({"", &op::multi_cast, {f32({2}), f32({1})}, to("bf16")}, {{1 + 0x1p-8, 1 + 3 * 0x1p-8}, {-0.5}});
  EXPECT_EQ(out[0].data, (std::vector<double>{1, 1 + 0x1p-6}));
  EXPECT_EQ(out[1].data, (std::vector<double>{-0.5}));
}

TEST(MultiCast, HasTheBitsOfItsDecomposition) {
  for (const OpCase& c : multi_cast_cases()) expect_bits_of_decomposition(c);
}

TEST(MultiCast, RefusesIntegers) {
  expect_refused({"", &op::multi_cast, {f32({2}), i32({3}, 0, 5)}, to("bf16")}, "expected float tensors, got i32[3]");
  expect_refused({"", &op::multi_cast, {f32({2})}, to("i32")}, "expected a float type to cast to, got i32");
}

}  // namespace
}  // namespace tokamak::test
