// Collectives on ranks that are threads, against the interpreter of many ranks.
#include "exec/collective_kernel.h"

#include "backend/ranks/inprocess.h"
#include "base/error.h"
#include "graph/builder.h"
#include "ops/collective.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/row_block.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"
#include "tests/support/run_on_cpu.h"
#include "tests/support/shuffled_device.h"

#include <gtest/gtest.h>

#include <functional>

namespace tokamak::test {
namespace {

const MeshAxis kData{"data", 2}, kTensor{"tensor", 3};
const Mesh kMesh{{kData, {"context", 1}, kTensor}};

using Append = std::function<ValueId(GraphBuilder& g, ValueId x)>;

Graph graph_of(const ValueType& type, const Append& append) {
  Graph graph("ranks");
  GraphBuilder g(graph);
  append(g, g.input("x", type));
  for (ValueId y : graph.nodes().back().outputs) graph.add_result(fmt::format("y{}", y), y);
  return graph;
}

// By rank: small integers, whose sums are exact in every type, and where the rank stands.
std::vector<HostTensor> arguments_of(const Graph& graph, int64_t rank) {
  std::vector<HostTensor> arguments = random_arguments(graph, uint64_t(rank) + 1);
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (double& v : arguments[i].data) v = std::round(8 * v);
    for (const MeshAxis& axis : kMesh.axes)
      if (graph.arguments()[i].name == coordinate_input(axis.name))
        arguments[i][0] = double(kMesh.coordinates(rank)[kMesh.find(axis.name)]);
  }
  return arguments;
}

void expect_as_interpreted(const Graph& graph) {
  std::vector<std::vector<HostTensor>> arguments;
  for (int64_t rank = 0; rank < kMesh.num_ranks(); ++rank) arguments.push_back(arguments_of(graph, rank));
  std::vector<Interpretation> expected = interpret_ranks(graph, kMesh, arguments);
  run_ranks(int(kMesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(kMesh, world);
    auto backend = cpu::make_backend();
    Interpretation got = run_on(*backend, graph, arguments[size_t(ranks.rank())], 1, &ranks);
    for (size_t i = 0; i < got.results.size(); ++i)
      EXPECT_EQ(got.results[i].data, expected[size_t(ranks.rank())].results[i].data) << "rank " << ranks.rank();
  });
}

struct Case {
  const char* name;
  ValueType type;
  Append append;
};

ValueId part_along(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim to) {
  return part(g, x, g.input(coordinate_input(axis.name), {DType::kI32, {}}), axis.size, to);
}

// Of two tensors in one node, the second twice the first's rows.
ValueId together(GraphBuilder& g, ValueId x, const OpDef& op, std::vector<CutDim> at, const MeshAxis& axis) {
  Attrs attrs{{"axis", axis.name}, {"size", axis.size}};
  if (at.empty())
    attrs.set("reduction", "sum");
  else
    set_cut_dims(attrs, at);
  return g.add(op, {x, concat(g, {x, x}, 0)}, attrs)[0];
}

// Of three tensors of their own, which a plan puts side by side.
ValueId three_sums(GraphBuilder& g, ValueId x, const MeshAxis& axis, bool ordered) {
  Attrs attrs{{"axis", axis.name}, {"size", axis.size}, {"reduction", "sum"}};
  if (ordered) attrs.set("ordered", true);
  return g.add(op::all_reduce, {neg(g, x), concat(g, {x, x, x}, 0), add(g, x, x)}, attrs)[0];
}

constexpr std::string_view kBlock = R"(graph block {
  input a0 = %0 : f32[3,4]
  input a1 = %1 : f32[4,5]
  %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[3,5]
  result r0 = %2
})";
constexpr std::string_view kFusedBlock = R"(graph block {
  input a0 = %0 : f32[3,4]
  input a1 = %1 : f32[4,5]
  %2, %3 = fused_matmul(%0, %1) : f32[3,5], f32[3,5] {
    graph body {
      input a0 = %0 : f32[3,4]
      input a1 = %1 : f32[4,5]
      %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[3,5]
      %3 = neg(%2) : f32[3,5]
      result r0 = %3
      result r1 = %2
    }
  }
  result r0 = %2
  result r1 = %3
})";

// The product of rows that the ranks gather, which begins with a rank's own.
ValueId blocks_of_rows(GraphBuilder& g, ValueId x, const MeshAxis& axis, std::string_view text) {
  auto block = std::make_shared<const Graph>(parse(text));
  ValueId w = g.input("w", {DType::kF32, {4, 5}}), at = g.input(coordinate_input(axis.name), {DType::kI32, {}});
  ValueIds rows = row_block(g, block, {x, w}, at, axis.size, 0, {});
  ValueId all = all_gather(g, x, axis, {0});
  for (int64_t step = 1; step < axis.size; ++step) rows = row_block(g, block, {all, w}, at, axis.size, step, rows);
  return rows[0];
}

// A product whose sum over the ranks is divided among them, a block at a time.
ValueId scattered_blocks(GraphBuilder& g, ValueId x, const MeshAxis& axis) {
  auto block = std::make_shared<const Graph>(parse(kBlock));
  ValueId w = g.input("w", {DType::kF32, {4, 5}}), at = g.input(coordinate_input(axis.name), {DType::kI32, {}});
  ValueId sum = kNoValue;
  for (int64_t step = axis.size; step-- > 0;) {
    ValueId rows = permute(g, row_block_alone(g, block, {x, w}, at, axis.size, step)[0], axis, step);
    sum = sum == kNoValue ? rows : add(g, sum, rows);
  }
  return sum;
}

const Case kCases[] = {
    {"three_sums", {DType::kF32, {5}}, [](auto& g, ValueId x) { return three_sums(g, x, kTensor, false); }},
    {"three_sums_bf16", {DType::kBF16, {3}}, [](auto& g, ValueId x) { return three_sums(g, x, kTensor, false); }},
    {"three_ordered_sums", {DType::kF32, {5, 3}}, [](auto& g, ValueId x) { return three_sums(g, x, kData, true); }},
    {"three_ordered_sums_bf16", {DType::kBF16, {1}}, [](auto& g, ValueId x) { return three_sums(g, x, kData, true); }},
    {"two_sums", {DType::kF32, {5, 3}}, [](auto& g, ValueId x) { return together(g, x, op::all_reduce, {}, kTensor); }},
    {"two_scattered",
     {DType::kF32, {6, 4}},
     [](auto& g, ValueId x) {
       return together(g, x, op::reduce_scatter, {{1}, {0, 3}}, kData);
     }},
    {"two_gathered",
     {DType::kF32, {3, 4}},
     [](auto& g, ValueId x) {
       return together(g, x, op::all_gather, {{1}, {1, 2}}, kTensor);
     }},
    {"sum", {DType::kF32, {5, 3}}, [](auto& g, ValueId x) { return all_reduce(g, x, kTensor, Reduction::kSum); }},
    {"sum_bf16", {DType::kBF16, {7}}, [](auto& g, ValueId x) { return all_reduce(g, x, kData, Reduction::kSum); }},
    {"max", {DType::kF32, {}}, [](auto& g, ValueId x) { return all_reduce(g, x, kTensor, Reduction::kMax); }},
    {"scatter_rows", {DType::kF32, {6, 2}}, [](auto& g, ValueId x) { return reduce_scatter(g, x, kTensor, {0}); }},
    {"scatter_columns", {DType::kF32, {2, 6}}, [](auto& g, ValueId x) { return reduce_scatter(g, x, kTensor, {1}); }},
    {"scatter_blocks",
     {DType::kF32, {4, 12, 2}},
     [](auto& g, ValueId x) {
       return reduce_scatter(g, x, kData, {1, 3});
     }},
    {"gather_rows", {DType::kF16, {2, 5}}, [](auto& g, ValueId x) { return all_gather(g, x, kData, {0}); }},
    {"gather_columns", {DType::kF32, {3, 2}}, [](auto& g, ValueId x) { return all_gather(g, x, kTensor, {1}); }},
    {"gather_blocks",
     {DType::kI32, {3, 6}},
     [](auto& g, ValueId x) {
       return all_gather(g, x, kTensor, {1, 2});
     }},
    {"to_columns", {DType::kF32, {2, 6}}, [](auto& g, ValueId x) { return all_to_all(g, x, kTensor, {0}, {1}); }},
    {"to_rows",
     {DType::kF32, {6, 4, 2}},
     [](auto& g, ValueId x) {
       return all_to_all(g, x, kTensor, {1, 2}, {0});
     }},
    {"to_blocks",
     {DType::kF32, {3, 2, 8}},
     [](auto& g, ValueId x) {
       return all_to_all(g, x, kData, {0}, {2, 2});
     }},
    {"blocks_of_rows", {DType::kF32, {3, 4}}, [](auto& g, ValueId x) { return blocks_of_rows(g, x, kTensor, kBlock); }},
    {"blocks_of_two", {DType::kF32, {3, 4}}, [](auto& g, ValueId x) { return blocks_of_rows(g, x, kData, kBlock); }},
    {"fused_blocks",
     {DType::kF32, {3, 4}},
     [](auto& g, ValueId x) { return blocks_of_rows(g, x, kTensor, kFusedBlock); }},
    {"scattered_blocks", {DType::kF32, {9, 4}}, [](auto& g, ValueId x) { return scattered_blocks(g, x, kTensor); }},
    {"permuted", {DType::kBF16, {3, 2}}, [](auto& g, ValueId x) { return permute(g, x, kTensor, 2); }},
    {"part_of_rows", {DType::kF32, {6, 2}}, [](auto& g, ValueId x) { return part_along(g, x, kTensor, {0}); }},
    {"part_of_blocks",
     {DType::kF32, {3, 12}},
     [](auto& g, ValueId x) {
       return part_along(g, x, kTensor, {1, 2});
     }},
};

class CollectiveKernel : public testing::TestWithParam<Case> {};

TEST_P(CollectiveKernel, GivesWhatTheInterpreterGives) {
  expect_as_interpreted(graph_of(GetParam().type, GetParam().append));
}

INSTANTIATE_TEST_SUITE_P(Cases, CollectiveKernel, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Notes its calls and does nothing.
class Listener : public Communicator {
 public:
  Listener(Membership membership, std::vector<std::string>& calls)
      : Communicator(std::move(membership)), calls_(calls) {}
  void abort(std::string_view) override {}
  void check() override {}

 protected:
  void begin(const CommunicatorCall& call) override { calls_.push_back(to_string(call)); }
  void do_all_reduce(const void*, void*, int64_t, DType, Reduction, Queue) override {}
  void do_reduce_scatter(const void*, void*, int64_t, DType, Reduction, Queue) override {}
  void do_all_gather(const void*, void*, int64_t, DType, Queue) override {}
  void do_all_to_all(const void*, void*, int64_t, DType, Queue) override {}
  void do_broadcast(void*, int64_t, DType, int, Queue) override {}
  void do_send_recv(const void*, int64_t, int, void*, int64_t, int, DType, Queue) override {}
  void do_barrier(Queue) override {}
  void add_tree(std::span<const TreePiece>, void*, int64_t count, DType, Queue) override {
    calls_.push_back(fmt::format("add_tree({})", count));
  }
  std::vector<std::string> do_exchange(std::string_view mine) override {
    return std::vector<std::string>(size_t(size()), std::string(mine));
  }
  std::unique_ptr<Communicator> do_split(Membership membership) override {
    return std::make_unique<Listener>(std::move(membership), calls_);
  }

 private:
  std::vector<std::string>& calls_;
};

std::vector<std::string> calls_of(const Append& append) {
  Graph graph = graph_of({DType::kF32, {24}}, append);
  std::vector<std::string> calls;
  Listener world({.axis = "world", .ranks = {0, 1}, .rank = 0}, calls);
  MeshRanks ranks({{kData, {"context", 1}, {"tensor", 1}}}, world);
  calls.clear();
  auto backend = cpu::make_backend();
  run_on(*backend, graph, random_arguments(graph), 1, &ranks);
  return calls;
}

// 96 and 288 bytes, of which the first reaches to 128: behind it there are 8 elements that nobody reads.
TEST(CollectiveKernel, AddsWhatLiesSideBySideAsOne) {
  using Calls = std::vector<std::string>;
  EXPECT_EQ(calls_of([](auto& g, ValueId x) { return three_sums(g, x, kData, false); }),
            (Calls{"all_reduce(f32[136], sum)"}));
  EXPECT_EQ(calls_of([](auto& g, ValueId x) { return three_sums(g, x, kData, true); }),
            (Calls{"all_to_all(f32[68])", "add_tree(68)", "all_gather(f32[68])"}));
  EXPECT_EQ(calls_of([](auto& g, ValueId x) { return together(g, x, op::all_reduce, {}, kData); }),
            (Calls{"all_reduce(f32[24], sum)", "all_reduce(f32[48], sum)"}))
      << "an input has a place of its own";
}

// What a rank of two asks for where the last node's operands and results lie at these bytes of two buffers.
std::vector<std::string> calls_at(const Append& append, const std::vector<int>& from, const std::vector<int>& to) {
  Graph graph = graph_of({DType::kF32, {2}}, append);
  std::vector<std::string> calls;
  Listener world({.axis = "world", .ranks = {0, 1}, .rank = 0}, calls);
  MeshRanks ranks({{kData, {"context", 1}, {"tensor", 1}}}, world);
  auto backend = cpu::make_backend();
  auto kernel = make_collective_kernel(ranks, *backend, 0, graph, graph.nodes().back());
  std::vector<std::byte> workspace(size_t(kernel->workspace_bytes())), given(1024), made(1024);
  kernel->use_workspace(workspace.data());
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (int at : from) inputs.push_back(&given[size_t(at)]);
  for (int at : to) outputs.push_back(&made[size_t(at)]);
  calls.clear();
  kernel->run(inputs, outputs);
  return calls;
}

TEST(CollectiveKernel, AddsTogetherWhatLiesSideBySideOnBothEnds) {
  auto sums = [](auto& g, ValueId x) { return three_sums(g, x, kData, false); };  // of 2, 6 and 2 elements
  EXPECT_EQ(calls_at(sums, {0, 64, 128}, {0, 64, 128}).size(), 1u);
  EXPECT_EQ(calls_at(sums, {0, 64, 128}, {0, 64, 192}).size(), 2u);
  EXPECT_EQ(calls_at(sums, {0, 64, 192}, {0, 64, 128}).size(), 2u);
  EXPECT_EQ(calls_at(sums, {0, 64, 128}, {0, 128, 192}).size(), 2u);
}

// A rank's part of both is not the part of one that reaches over both.
TEST(CollectiveKernel, ScattersWhatLiesSideBySideOneByOne) {
  auto scattered = [](auto& g, ValueId x) {
    Attrs attrs{{"axis", kData.name}, {"ordered", true}, {"size", kData.size}};
    set_cut_dims(attrs, std::vector<CutDim>{{0}, {0}});
    return g.add(op::reduce_scatter, {neg(g, x), add(g, x, x)}, attrs)[0];
  };
  EXPECT_EQ(calls_at(scattered, {0, 64}, {0, 64}), calls_at(scattered, {0, 512}, {0, 512}));
}

// Which are those of a GPU, and none on the CPU.
TEST(CollectiveKernel, HasSpaceForTheWorkspacesOfKernelsInside) {
  Graph graph = graph_of({DType::kF32, {3, 2}}, [](auto& g, ValueId x) { return all_gather(g, x, kTensor, {1}); });
  run_ranks(int(kMesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(kMesh, world);
    auto bytes = [&](Backend& backend) {
      return make_collective_kernel(ranks, backend, 0, graph, graph.nodes().back())->workspace_bytes();
    };
    ShuffledDevice device(1);  // whose kernels take 64 bytes
    EXPECT_EQ(bytes(device), bytes(*cpu::make_backend()) + 64);
  });
}

TEST(CollectiveKernel, NeedsRanks) {
  Graph graph =
      graph_of({DType::kF32, {2}}, [](auto& g, ValueId x) { return all_reduce(g, x, kData, Reduction::kSum); });
  EXPECT_THROW(run_on_cpu(graph, random_arguments(graph)), std::exception);
}

}  // namespace
}  // namespace tokamak::test
