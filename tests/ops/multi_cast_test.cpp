#include "ops/multi_cast.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs to(const char* type) { return {{"to", std::string(type)}}; }

Attrs joined_to(const char* type, std::vector<int64_t> joins) {
  Attrs attrs = to(type);
  attrs.set("joins", std::move(joins));
  return attrs;
}

}  // namespace

std::vector<OpCase> multi_cast_cases() {
  std::vector<CaseInput> many{f32({3, 5}), f32({}), f32({70, 1001}), f32({1}), f32({2, 3, 4}, -1e5, 1e5)};
  std::vector<CaseInput> mixed{f32({70}), bf16({9}), {{DType::kF16, {5, 7}}}};
  std::vector<CaseInput> rows{f32({3, 5}), bf16({1, 5}), f32({70, 1001}), f32({2, 1001}), f32({}), f32({7}), f32({4})};
  return {
      {"ToBf16", &op::multi_cast, many, to("bf16"), 0, nullptr, false},
      {"ToF16", &op::multi_cast, many, to("f16"), 0, nullptr, false},
      {"ToF32", &op::multi_cast, {f32({3, 5}), f32({7})}, to("f32"), 0},
      {"Mixed", &op::multi_cast, mixed, to("bf16"), 0, nullptr, false},
      {"MixedToF32", &op::multi_cast, mixed, to("f32"), 0},
      {"Joined", &op::multi_cast, rows, joined_to("bf16", {2, 2, 1, 2}), 0, nullptr, false},
      {"JoinedToF32", &op::multi_cast, {f32({3, 5}), f32({7}), f32({2, 5})}, joined_to("f32", {1, 1, 1}), 0},
      {"RowsJoinedToF32", &op::multi_cast, {f32({3, 2}), f32({1, 2}), f32({2, 2}), f32({7})}, joined_to("f32", {3, 1})},
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

TEST(MultiCast, PutsRowsSideBySide) {
  OpCase c{"", &op::multi_cast, {f32({1, 2}), f32({2, 2}), f32({1})}, joined_to("bf16", {2, 1})};
  auto out = evaluate(c, {{1, 2}, {3, 4, 5, 6}, {7}});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(out[0].data, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(out[1].data, (std::vector<double>{7}));
}

TEST(MultiCast, KnowsWhereItsInputsGo) {
  Graph graph = case_graph({"", &op::multi_cast, {f32({1, 2}), f32({2, 2}), f32({5})}, joined_to("bf16", {2, 1})});
  const Node& node = graph.nodes()[0];
  EXPECT_EQ(cast_values(node, 0).size(), 2u);
  EXPECT_EQ(cast_values(node, 1)[0], node.inputs[2]);
  std::vector<CastPlace> places = cast_places(graph, node);
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[1].output, 0u);
  EXPECT_EQ(places[1].begin, 2);
  EXPECT_EQ(places[2].output, 1u);
  EXPECT_EQ(places[2].begin, 0);
}

TEST(MultiCast, RefusesWhatCannotBeJoined) {
  auto refused = [](std::vector<CaseInput> inputs, std::vector<int64_t> joins, const std::string& piece) {
    expect_refused({"", &op::multi_cast, std::move(inputs), joined_to("bf16", std::move(joins))}, piece);
  };
  refused({f32({2}), f32({3})}, {1}, "expected joins of 2 tensors, got [1]");
  refused({f32({2}), f32({3})}, {2, 0}, "expected joins of 2 tensors, got [2,0]");
  refused({f32({2, 3}), f32({2, 4})}, {2}, "expected tensors like f32[2,3] but for dim 0, got f32[2,4]");
  refused({f32({2, 3}), f32({3})}, {2}, "expected tensors like f32[2,3] but for dim 0, got f32[3]");
  refused({f32({}), f32({})}, {2}, "expected tensors with a dim to join, got f32[]");
}

TEST(MultiCast, RefusesIntegers) {
  expect_refused({"", &op::multi_cast, {f32({2}), i32({3}, 0, 5)}, to("bf16")}, "expected float tensors, got i32[3]");
  expect_refused({"", &op::multi_cast, {f32({2})}, to("i32")}, "expected a float type to cast to, got i32");
}

}  // namespace
}  // namespace tokamak::test
