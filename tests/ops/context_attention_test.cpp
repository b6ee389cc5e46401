#include "ops/context_attention.h"

#include "ops/context_attention_parts.h"
#include "ops/interpret.h"
#include "tests/ops/harness.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs attrs(int64_t heads, double dropout = 0) {
  return {{"dropout", dropout}, {"heads", heads}, {"scale", 0.6}, {"stream", int64_t(4)}};
}
Attrs part_attrs(int64_t heads, double dropout) {
  Attrs all = attrs(heads, dropout);
  all.set("place", std::vector<int64_t>{2, 4, 0, 2, 2, 0});
  return all;
}

CaseInput coordinate(int64_t rank) { return i32({}, double(rank), double(rank) + 1); }

using TypeOf = CaseInput (*)(Shape, double, double);

// Of rank `rank` of `ranks`, each with T rows a sample.
std::vector<CaseInput> inputs(int64_t ranks, int64_t rank, int64_t B, int64_t T, int64_t C, TypeOf type = f32) {
  return {type({B, T, 3 * C}, -1, 1), type({ranks * B, T, 2 * C}, -1, 1), coordinate(rank)};
}
std::vector<CaseInput> grad_inputs(int64_t ranks, int64_t rank, int64_t B, int64_t T, int64_t C, int64_t heads,
                                   TypeOf type = f32) {
  std::vector<CaseInput> all = inputs(ranks, rank, B, T, C, type);
  all.insert(all.end(), {type({B, T, C}, -1, 1), f32({B, heads, T}, 1, 3), type({B, T, C}, -1, 1)});
  return all;
}
std::vector<CaseInput> with(std::vector<CaseInput> all, std::vector<CaseInput> more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

std::vector<OpCase> context_attention_cases() {
  const OpDef *forward = &op::context_attention, *grad = &op::context_attention_grad;
  return {
      {"First", forward, inputs(2, 0, 2, 4, 6), attrs(2)},
      {"Last", forward, inputs(2, 1, 2, 4, 6), attrs(3)},
      {"OfThree", forward, inputs(3, 1, 2, 2, 6), attrs(1)},
      {"Dropout", forward, with(inputs(2, 1, 2, 10, 6), {rng()}), attrs(2, 0.3)},
      {"DropoutPart", forward, with(inputs(2, 1, 2, 4, 6), {rng_of_part()}), part_attrs(2, 0.3)},
      {"Documents", forward, with(inputs(2, 0, 2, 6, 6), {documents({2, 6}, 3)}), attrs(2)},
      {"Both", forward, with(inputs(3, 2, 2, 6, 6), {rng(), documents({2, 6}, 3)}), attrs(2, 0.3)},
      {"Long", forward, inputs(2, 1, 1, 222, 12), attrs(2)},
      {"LongBoth", forward, with(inputs(2, 0, 2, 222, 12), {rng(), documents({2, 222}, 9)}), attrs(2, 0.2)},
      {"Bf16", forward, inputs(4, 2, 2, 6, 24, bf16), attrs(2), 2e-2},
      {"First", grad, grad_inputs(2, 0, 2, 4, 6, 2), attrs(2)},
      {"Last", grad, grad_inputs(2, 1, 2, 4, 6, 3), attrs(3)},
      {"OfThree", grad, grad_inputs(3, 1, 2, 2, 6, 1), attrs(1)},
      {"Dropout", grad, with(grad_inputs(2, 1, 2, 10, 6, 2), {rng()}), attrs(2, 0.3)},
      {"DropoutPart", grad, with(grad_inputs(2, 1, 2, 4, 6, 2), {rng_of_part()}), part_attrs(2, 0.3)},
      {"Documents", grad, with(grad_inputs(2, 0, 2, 6, 6, 2), {documents({2, 6}, 3)}), attrs(2)},
      {"Both", grad, with(grad_inputs(3, 2, 2, 6, 6, 2), {rng(), documents({2, 6}, 3)}), attrs(2, 0.3)},
      {"Long", grad, grad_inputs(2, 1, 1, 222, 12, 2), attrs(2), 1e-4},
      {"LongBoth", grad, with(grad_inputs(2, 0, 2, 222, 12, 2), {rng(), documents({2, 222}, 9)}), attrs(2, 0.2), 1e-4},
      {"Bf16", grad, grad_inputs(4, 2, 2, 6, 24, 2, bf16), attrs(2), 2e-2},
  };
}

namespace {

TEST(ContextAttention, DrawsItsShareOfTheWholesNumbers) {
  for (double dropout : {0.0, 0.3}) {
    std::vector<CaseInput> all = inputs(4, 1, 2, 6, 12);
    if (dropout > 0) all.push_back(rng());
    Graph graph = case_graph({"", &op::context_attention, all, attrs(3, dropout)});
    double of_whole = 2 * 3 * 24 * 24 / 2;
    EXPECT_EQ(node_cost(graph, graph.nodes()[0]).draws, dropout > 0 ? of_whole / 4 : 0);
  }
}

TEST(ContextAttention, RefusesWrongShapes) {
  expect_refused({"", &op::context_attention, {f32({2, 4, 18}), f32({4, 4, 18}), coordinate(0)}, attrs(2)},
                 "expected keys and values (N B, T, 2C) of several ranks, T even, got f32[4,4,18]");
  expect_refused({"", &op::context_attention, inputs(1, 0, 2, 4, 6), attrs(2)}, "of several ranks");
  expect_refused({"", &op::context_attention, inputs(2, 0, 2, 5, 6), attrs(2)}, "T even");
  expect_refused({"", &op::context_attention, {f32({2, 4, 18}), f32({4, 4, 12}), f32({})}, attrs(2)},
                 "expected a coordinate i32[], got f32[]");
  expect_refused({"", &op::context_attention, with(inputs(2, 0, 2, 4, 6), {documents({2, 8}, 2)}), attrs(2)},
                 "expected documents to be i32[2,4], got i32[2,8]");
}

// Of what all ranks have, the rank's own is as in its qkv.
void gather_own_keys(std::vector<HostTensor>& arguments) {
  const HostTensor& qkv = arguments[0];
  int64_t C = qkv.shape()[2] / 3, rows = qkv.size() / (3 * C), first = int64_t(arguments[2][0]) * rows;
  for (int64_t i = 0; i < rows * 2 * C; ++i)
    arguments[1][first * 2 * C + i] = qkv[i / (2 * C) * 3 * C + C + i % (2 * C)];
}

TEST(ContextAttention, IsThatOfItsParts) {
  for (const OpCase& c : context_attention_cases()) {
    Graph whole = case_graph(c), parts;
    const Node& node = whole.nodes()[0];
    if (c.inputs.size() > size_t(c.op->min_inputs)) {
      EXPECT_FALSE(has_parts(node)) << c.name << ", with dropout or documents";
      continue;
    }
    ASSERT_TRUE(has_parts(node)) << c.name;
    GraphBuilder g(parts);
    ValueIds in;
    for (const Argument& argument : whole.arguments()) in.push_back(g.input(argument.name, whole.type(argument.value)));
    ValueIds outputs = context_attention_in_parts(g, node, in);
    std::vector<HostTensor> arguments = case_arguments(c);
    gather_own_keys(arguments);
    if (node.op == &op::context_attention_grad) {  // numbers of the size that they have
      OpCase forward{"", &op::context_attention, {c.inputs.begin(), c.inputs.begin() + 3}, c.attrs};
      std::vector<HostTensor> of{arguments.begin(), arguments.begin() + 3};
      std::vector<HostTensor> results = interpret(case_graph(forward), of).results;
      arguments[3] = results[0], arguments[4] = results[1];
    }
    for (size_t i = 0; i < outputs.size(); ++i) parts.add_result("y" + std::to_string(i), outputs[i]);
    std::vector<HostTensor> expected = interpret(whole, arguments).results, got = interpret(parts, arguments).results;
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(to_string(got[i].type), to_string(expected[i].type)) << c.name;
      EXPECT_LE(difference(got[i], expected[i]), c.cpu_tolerance > 1e-3 ? 0.05 : 1e-9) << c.op->name << " " << c.name;
    }
  }
}

}  // namespace
}  // namespace tokamak::test
