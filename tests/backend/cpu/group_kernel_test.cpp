// Tile programs against the interpreter: bodies of every form that ops/group_form.h allows, in awkward sizes.
#include "backend/cpu/group_kernel.h"

#include "base/parallel.h"
#include "graph/builder.h"
#include "graph/text.h"
#include "ops/all_ops.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "tests/support/random_tensors.h"
#include "tests/support/run_on_cpu.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>

namespace tokamak::test {
namespace {

using Fill = std::function<void(GraphBuilder&, Graph&)>;

// A graph of one group, whose arguments are those of the body.
Graph make_group(const std::string& kind, const Fill& fill) {
  auto body = std::make_shared<Graph>("body");
  GraphBuilder inner(*body);
  fill(inner, *body);
  Graph graph("group");
  GraphBuilder g(graph);
  ValueIds inputs;
  for (const Argument& argument : body->arguments())
    inputs.push_back(g.input(argument.name, body->type(argument.value)));
  ValueIds outputs = g.add(*find_op(kind), inputs, {}, body);
  for (size_t i = 0; i < outputs.size(); ++i) graph.add_result("r" + std::to_string(i), outputs[i]);
  verify(graph);
  return graph;
}

/// Runs the group's kernel; output i lies in the storage of input over[i], where that is given and not negative.
std::vector<HostTensor> run_kernel(const Graph& graph, const std::vector<HostTensor>& arguments,
                                   std::vector<int> over = {}) {
  const Node& group = graph.nodes()[0];
  std::vector<std::vector<std::byte>> storage;
  for (const HostTensor& argument : arguments) storage.push_back(to_bytes(argument));
  over.resize(group.outputs.size(), -1);
  for (ValueId output : group.outputs) storage.emplace_back(size_t(num_bytes(graph.type(output))));
  std::vector<const void*> inputs;
  std::vector<size_t> places;
  std::vector<void*> outputs;
  for (size_t i = 0; i < arguments.size(); ++i) inputs.push_back(storage[i].data());
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    places.push_back(over[i] < 0 ? arguments.size() + i : size_t(over[i]));
    outputs.push_back(storage[places[i]].data());
  }
  cpu::make_group_kernel(graph, group)->run(inputs, outputs);
  std::vector<HostTensor> results;
  for (size_t i = 0; i < group.outputs.size(); ++i)
    results.push_back(from_bytes(graph.type(group.outputs[i]), storage[places[i]]));
  return results;
}

void expect_equals_interpreter(const std::string& kind, const Fill& fill, double tolerance = 1e-5,
                               std::vector<int> over = {}) {
  Graph graph = make_group(kind, fill);
  std::vector<HostTensor> arguments = random_arguments(graph, 7, 9);
  std::vector<HostTensor> expected = interpret(graph, arguments).results, got = run_kernel(graph, arguments, over);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LE(difference(got[i], expected[i]), tolerance) << "result " << i << " of\n" << print(graph);
}

// Every case over these sizes: single rows and columns, odd ones, several chunks a row, a vocabulary.
const std::vector<Shape> kSpaces = {{1, 1},   {1, 7},   {7, 1},    {3, 5},    {64, 64},
                                    {2, 300}, {300, 3}, {3, 5000}, {1, 50304}};

class GroupKernel : public ::testing::TestWithParam<Shape> {
 protected:
  int64_t R = GetParam()[0], C = GetParam()[1];
  double sum_tolerance() const { return C > 1000 || R > 200 ? 1e-4 : 1e-5; }

  static ValueId in(GraphBuilder& g, const char* name, Shape shape, DType dtype = DType::kF32) {
    return g.input(name, {dtype, std::move(shape)});
  }
};

TEST_P(GroupKernel, FlatWithBroadcasts) {
  expect_equals_interpreter("flat", [&](GraphBuilder& g, Graph& body) {
    ValueId a = in(g, "a", {R, C}), b = in(g, "b", {1, C}), d = in(g, "d", {R, 1}), s = in(g, "s", {1, 1});
    ValueId y = mul(g, gelu(g, add(g, mul(g, a, b), d)), s);
    body.add_result("y", y);
    body.add_result("z", sub(g, a, y));
  });
}

TEST_P(GroupKernel, FlatOfUniformValues) {
  expect_equals_interpreter("flat", [&](GraphBuilder& g, Graph& body) {
    ValueId d = in(g, "d", {R, 1}), b = in(g, "b", {1, C}), s = in(g, "s", {1, 1});
    ValueId row = exp(g, mul(g, d, s)), column = tanh(g, sub(g, b, s));  // (R, 1) and (1, C)
    body.add_result("outer", mul(g, row, column));
    body.add_result("sum", add(g, exp(g, column), d));
  });
}

TEST_P(GroupKernel, FlatReshapesItsEdges) {
  expect_equals_interpreter("flat", [&](GraphBuilder& g, Graph& body) {
    ValueId a = reshape(g, in(g, "a", {1, R, 1, C}), {R, C}), b = reshape(g, in(g, "b", {C}), {1, C});
    body.add_result("y", reshape(g, add(g, a, b), {R * C}));
  });
}

TEST_P(GroupKernel, FlatInOtherTypes) {
  expect_equals_interpreter(
      "flat",
      [&](GraphBuilder& g, Graph& body) {
        ValueId a = in(g, "a", {R, C}, DType::kBF16), b = in(g, "b", {1, C}, DType::kBF16);
        ValueId ids = in(g, "ids", {R, 1}, DType::kI32), all = in(g, "all", {R, C}, DType::kI32);
        ValueId sum = add(g, cast(g, a, DType::kF32), cast(g, b, DType::kF32));
        body.add_result("f32", add(g, sum, mul(g, ids, all)));
        body.add_result("bf16", cast(g, mul(g, sum, constant(g, 0.3, {1, 1})), DType::kBF16));
        body.add_result("i32", cast(g, mul(g, sum, constant(g, 100, {1, 1})), DType::kI32));
        body.add_result("f16", cast(g, sum, DType::kF16));
      },
      1e-2);
}

TEST_P(GroupKernel, FlatGenerators) {
  expect_equals_interpreter("flat", [&](GraphBuilder& g, Graph& body) {
    ValueId rng = in(g, "rng", {2}, DType::kI32), a = in(g, "a", {R, C});
    body.add_result("across", add(g, a, iota(g, {1, C}, 1)));
    body.add_result("down", add(g, a, iota(g, {R, 1}, 0)));
    body.add_result("both", iota(g, {R, C}, 1));
    body.add_result("periods", add(g, iota(g, {R, 1}, 0, 3), mul(g, iota(g, {1, C}, 1, 5), a)));
    body.add_result("random", random_uniform(g, rng, {R, C}, 3));
    body.add_result("random_row", add(g, a, random_uniform(g, rng, {1, C}, 4)));
    body.add_result("random_column", add(g, a, random_uniform(g, rng, {R, 1}, 5)));
    body.add_result("constant", constant(g, 0.25, {R, C}));
    body.add_result("computed", exp(g, constant(g, 0.25, {R, C})));
  });
}

TEST_P(GroupKernel, FlatInPlace) {
  Fill fill = [&](GraphBuilder& g, Graph& body) {
    ValueId a = in(g, "a", {R, C}), b = in(g, "b", {R, C}), v = in(g, "v", {1, C});
    ValueId y = mul(g, add(g, a, v), b);
    body.add_result("y", y);
    body.add_result("z", exp(g, y));
  };
  expect_equals_interpreter("flat", fill, 1e-5, {0, 1});
  expect_equals_interpreter("flat", fill, 1e-5, {1, -1});
  expect_equals_interpreter("flat", fill, 1e-5, {-1, 0});
}

TEST_P(GroupKernel, FlatInPlaceOverWhatIsReadLater) {
  Fill fill = [&](GraphBuilder& g, Graph& body) {
    ValueId a = in(g, "a", {R, C}), b = in(g, "b", {R, C});
    ValueId y = add(g, a, b);
    body.add_result("y", y);
    body.add_result("z", sub(g, a, mul(g, y, b)));
  };
  expect_equals_interpreter("flat", fill, 1e-5, {0, 1});
  expect_equals_interpreter("flat", fill, 1e-5, {1, 0});
}

TEST_P(GroupKernel, RowWithoutReduction) {
  expect_equals_interpreter("row", [&](GraphBuilder& g, Graph& body) {
    ValueId a = in(g, "a", {R, C}), d = in(g, "d", {R, 1});
    body.add_result("y", mul(g, a, d));
    body.add_result("per_row", exp(g, d));
  });
}

TEST_P(GroupKernel, RowWithOneReduction) {
  expect_equals_interpreter(
      "row",
      [&](GraphBuilder& g, Graph& body) {
        ValueId a = in(g, "a", {R, C}), b = in(g, "b", {1, C});
        ValueId s = reduce_sum(g, mul(g, a, b), {1}, true);
        body.add_result("s", s);
        body.add_result("y", sub(g, a, mul(g, s, constant(g, 1.0 / double(C), {1, 1}))));
      },
      sum_tolerance());
}

TEST_P(GroupKernel, RowSoftmax) {
  expect_equals_interpreter("row", [&](GraphBuilder& g, Graph& body) {
    ValueId a = in(g, "a", {R, C});
    ValueId top = reduce_max(g, a, {1}, true);
    ValueId e = exp(g, sub(g, a, top));
    ValueId s = reduce_sum(g, e, {1}, true);
    body.add_result("y", div(g, e, s));
    body.add_result("lse", reshape(g, add(g, log(g, s), top), {R}));
  });
}

TEST_P(GroupKernel, RowWithThreeReductions) {
  expect_equals_interpreter(
      "row",
      [&](GraphBuilder& g, Graph& body) {
        ValueId a = in(g, "a", {R, C}), gain = reshape(g, in(g, "gain", {C}), {1, C}),
                n = constant(g, 1.0 / double(C), {1, 1});
        ValueId mean = mul(g, reduce_sum(g, a, {1}, true), n);
        ValueId centred = sub(g, a, mean);
        ValueId variance = mul(g, reduce_sum(g, mul(g, centred, centred), {1}, true), n);
        ValueId x = mul(g, mul(g, centred, rsqrt(g, add(g, variance, constant(g, 0.01, {1, 1})))), gain);
        ValueId top = reduce_max(g, x, {1}, true);
        body.add_result("mean", mean);
        body.add_result("x", x);
        body.add_result("y", exp(g, sub(g, x, top)));
        body.add_result("top", top);
      },
      1e-4);
}

TEST_P(GroupKernel, RowReducesTwiceInOnePhaseAndReducesRowValues) {
  expect_equals_interpreter(
      "row",
      [&](GraphBuilder& g, Graph& body) {
        ValueId a = in(g, "a", {R, C}), d = in(g, "d", {R, 1});
        ValueId s = reduce_sum(g, a, {1}, true), top = reduce_max(g, mul(g, a, d), {1}, true);
        body.add_result("s", s);
        body.add_result("top", mul(g, top, s));
        body.add_result("y", mul(g, add(g, a, top), d));
      },
      sum_tolerance());
}

TEST_P(GroupKernel, RowInOtherTypes) {
  expect_equals_interpreter(
      "row",
      [&](GraphBuilder& g, Graph& body) {
        ValueId a = cast(g, in(g, "a", {R, C}, DType::kBF16), DType::kF32),
                target = in(g, "target", {R, 1}, DType::kI32);
        ValueId hit = equal(g, iota(g, {1, C}, 1), target);
        ValueId picked = reduce_sum(g, select(g, hit, a, constant(g, 0, {1, 1})), {1}, true);
        ValueId top = reduce_max(g, a, {1}, true);
        body.add_result("picked", picked);
        body.add_result("y", cast(g, sub(g, a, top), DType::kBF16));
        body.add_result("top", cast(g, top, DType::kBF16));
      },
      1e-2);
}

TEST_P(GroupKernel, RowWithDropout) {
  expect_equals_interpreter("row", [&](GraphBuilder& g, Graph& body) {
    ValueId a = in(g, "a", {R, C}), rng = in(g, "rng", {2}, DType::kI32);
    ValueId top = reduce_max(g, a, {1}, true);
    ValueId u = random_uniform(g, rng, {R, C}, 2);
    body.add_result("y", select(g, less(g, u, constant(g, 0.5, {1, 1})), constant(g, 0, {1, 1}), sub(g, a, top)));
  });
}

TEST_P(GroupKernel, Column) {
  expect_equals_interpreter(
      "column",
      [&](GraphBuilder& g, Graph& body) {
        ValueId a = in(g, "a", {R, C}), b = in(g, "b", {R, C}), d = in(g, "d", {R, 1}), s = in(g, "s", {1, C});
        ValueId y = mul(g, sub(g, a, d), s);
        body.add_result("bias", reduce_sum(g, b, {0}, true));
        body.add_result("gain", reshape(g, reduce_sum(g, mul(g, y, b), {0}, true), {C}));
        body.add_result("top", reduce_max(g, y, {0}, true));
        body.add_result("rows", reduce_sum(g, add(g, d, constant(g, 0.5, {R, C})), {0}, true));
        body.add_result("y", y);
      },
      1e-4);
}

TEST_P(GroupKernel, ColumnInOtherTypes) {
  expect_equals_interpreter(
      "column",
      [&](GraphBuilder& g, Graph& body) {
        ValueId a = cast(g, in(g, "a", {R, C}, DType::kBF16), DType::kF32);
        body.add_result("s", cast(g, reduce_max(g, a, {0}, true), DType::kF32));
        body.add_result("y", cast(g, mul(g, a, a), DType::kBF16));
      },
      1e-2);
}

INSTANTIATE_TEST_SUITE_P(Spaces, GroupKernel, ::testing::ValuesIn(kSpaces),
                         [](const auto& info) { return fmt::format("{}x{}", info.param[0], info.param[1]); });

// Which thread did what must not show.
TEST(GroupKernelThreads, GiveTheSameBits) {
  for (const std::string kind : {"flat", "row", "column"}) {
    for (Shape space : {Shape{7, 5000}, Shape{1000, 3}, Shape{257, 64}}) {
      Graph graph = make_group(kind, [&](GraphBuilder& g, Graph& body) {
        ValueId a = g.input("a", {DType::kF32, space}), rng = g.input("rng", {DType::kI32, {2}});
        ValueId x = mul(g, gelu(g, a), random_uniform(g, rng, space, 1));
        body.add_result("x", x);
        if (kind != "flat") body.add_result("s", reduce_sum(g, x, {kind == "row"}, true));
      });
      std::vector<HostTensor> arguments = random_arguments(graph);
      set_num_threads(1);
      std::vector<HostTensor> expected = run_kernel(graph, arguments);
      for (int threads : {2, 3, 5}) {
        set_num_threads(threads);
        std::vector<HostTensor> got = run_kernel(graph, arguments);
        for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].data, expected[i].data) << kind << " on " << threads;
      }
      set_num_threads(0);
    }
  }
}

}  // namespace
}  // namespace tokamak::test
