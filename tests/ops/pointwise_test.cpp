#include "ops/pointwise.h"
#include "ops/scalar_math.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {

std::vector<OpCase> pointwise_cases() {
  return {
      {"Add", &op::add, {f32({2, 3}), f32({2, 3})}},
      {"AddBroadcastsVector", &op::add, {f32({4, 3}), f32({3})}},
      {"AddBroadcastsColumn", &op::add, {f32({4, 1}), f32({4, 5})}},
      {"AddBroadcastsBoth", &op::add, {f32({2, 1, 3}), f32({4, 1})}},
      {"AddScalar", &op::add, {f32({}), f32({7})}},
      {"AddScalars", &op::add, {f32({}), f32({})}},
      {"AddIntegers", &op::add, {i32({5}, 0, 100), f32({5})}},
      {"AddBf16", &op::add, {bf16({9}), bf16({9})}, {}, 1e-2},
      {"AddMixed", &op::add, {bf16({9}), f32({9})}},
      {"Sub", &op::sub, {f32({2, 3}), f32({3})}},
      {"Mul", &op::mul, {f32({2, 3}), f32({2, 1})}},
      {"Div", &op::div, {f32({2, 3}), f32({3}, 0.5, 2)}},
      {"Maximum", &op::maximum, {f32({5, 3}), f32({5, 3})}},
      {"MaximumBroadcasts", &op::maximum, {f32({5, 3}), f32({3})}},
      {"Minimum", &op::minimum, {f32({5, 3}), f32({5, 3})}},
      {"MinimumBroadcasts", &op::minimum, {f32({3}), f32({5, 3})}},
      {"Pow", &op::pow, {f32({2, 3}, 0.5, 2), f32({3}, -2, 3)}},
      {"Less", &op::less, {f32({20}), f32({20})}},
      {"Equal", &op::equal, {i32({40}, 0, 3), i32({40}, 0, 3)}},
      {"Select", &op::select, {i32({30}, 0, 2), f32({30}), f32({30})}},
      {"SelectBroadcasts", &op::select, {i32({4, 1}, 0, 2), f32({5}), f32({4, 5})}},
      {"SelectScalars", &op::select, {i32({9}, 0, 2), f32({}), f32({})}},
      {"Neg", &op::neg, {f32({3, 3})}},
      {"Exp", &op::exp, {f32({300}, -5, 5)}},
      {"Log", &op::log, {f32({300}, 0.1, 5)}},
      {"Tanh", &op::tanh, {f32({300}, -4, 4)}},
      {"Sqrt", &op::sqrt, {f32({30}, 0.1, 5)}},
      {"Rsqrt", &op::rsqrt, {f32({30}, 0.1, 5)}},
      {"Gelu", &op::gelu, {f32({300}, -4, 4)}},
      {"GeluBf16", &op::gelu, {bf16({300}, -4, 4)}, {}, 1e-2},
      {"Silu", &op::silu, {f32({300}, -8, 8)}},
      {"SiluBf16", &op::silu, {bf16({300}, -4, 4)}, {}, 1e-2},
      {"SiluGrad", &op::silu_grad, {f32({300}, -8, 8), f32({300})}},
      {"Relu2", &op::relu2, {f32({300}, -4, 4)}},
      {"Relu2Bf16", &op::relu2, {bf16({300}, -4, 4)}, {}, 1e-2},
      {"Relu2Grad", &op::relu2_grad, {f32({300}, -4, 4), f32({300})}},
      {"GeluGrad", &op::gelu_grad, {f32({300}, -4, 4), f32({300})}},
      {"StochasticBf16", &op::stochastic_bf16, {f32({300}, -8, 8), f32({}, 1, 9)}, {}, 0, nullptr, false},
      {"CastToBf16", &op::cast, {f32({40})}, {{"to", std::string("bf16")}}, 0, nullptr, false},
      {"CastToF16", &op::cast, {f32({40})}, {{"to", std::string("f16")}}, 0, nullptr, false},
      {"CastFromBf16", &op::cast, {bf16({40})}, {{"to", std::string("f32")}}, 0},
      {"CastToI32", &op::cast, {f32({40}, -9, 9)}, {{"to", std::string("i32")}}, 0, nullptr, false},
      {"CastFromI32", &op::cast, {i32({40}, -9, 9)}, {{"to", std::string("f32")}}, 0},
      {"CastToItself", &op::cast, {f32({40})}, {{"to", std::string("f32")}}, 0},
  };
}

namespace {

TEST(Pointwise, RefusesShapesThatDoNotBroadcast) {
  expect_refused({"", &op::add, {f32({2, 3}), f32({2})}},
                 "expected shapes that broadcast to each other, got [2,3] and [2]");
  expect_refused({"", &op::select, {f32({2}), f32({3}), f32({2})}}, "expected shapes that broadcast");
}

TEST(Pointwise, RefusesAWrongNumberOfInputs) {
  expect_refused({"", &op::add, {f32({2})}}, "expected 2 to 2 inputs, got 1");
  expect_refused({"", &op::neg, {f32({2}), f32({2})}}, "expected 1 to 1 inputs, got 2");
}

TEST(Pointwise, GivesTheWidestType) {
  auto type = [](CaseInput a, CaseInput b) {
    Graph graph = case_graph({"", &op::add, {a, b}});
    return to_string(graph.type(graph.results()[0].value));
  };
  EXPECT_EQ(type(bf16({3}), bf16({2, 1})), "bf16[2,3]");
  EXPECT_EQ(type(bf16({3}), f32({})), "f32[3]");
  EXPECT_EQ(type(i32({3}, 0, 9), i32({3}, 0, 9)), "f32[3]");
  EXPECT_EQ(type(f32({1, 3}), f32({4, 1})), "f32[4,3]");
}

TEST(Pointwise, TakesTheFirstOfEquals) {
  EXPECT_EQ(evaluate({"", &op::less, {f32({3}), f32({3})}}, {{1, 2, 3}, {2, 2, 2}})[0].data,
            (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(evaluate({"", &op::equal, {f32({3}), f32({3})}}, {{1, 2, 3}, {2, 2, 2}})[0].data,
            (std::vector<double>{0, 1, 0}));
}

TEST(Cast, RefusesAnUnknownType) {
  EXPECT_THROW(case_graph({"", &op::cast, {f32({2})}, {{"to", std::string("f64")}}}), std::exception);
}

TEST(Cast, RoundsToBf16AndTruncatesToIntegers) {
  EXPECT_EQ(evaluate({"", &op::cast, {f32({2})}, {{"to", std::string("bf16")}}}, {{1.00390625, 1.01171875}})[0].data,
            (std::vector<double>{1.0, 1.015625}));  // ties to even
  EXPECT_EQ(evaluate({"", &op::cast, {f32({4})}, {{"to", std::string("i32")}}}, {{1.75, -1.75, 0.5, 3}})[0].data,
            (std::vector<double>{1, -1, 0, 3}));
}

}  // namespace
}  // namespace tokamak::test
