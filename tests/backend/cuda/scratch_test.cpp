// Scratch memory of kernels as it is planned without a device. What kernels then ask for: model/scratch_gpu_test.cpp.
#include "backend/cuda/blocked_attention.h"
#include "backend/cuda/codegen/group_source.h"
#include "backend/cuda/cudnn_attention.h"
#include "backend/cuda/hopper_attention.h"
#include "backend/cuda/matmul_library.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "graph/builder.h"
#include "ops/attention.h"
#include "tests/backend/cuda/group_bodies.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tokamak::cuda {
namespace {

constexpr int64_t kMiB = 1 << 20;

DeviceInfo h200() {
  return {.name = "H200", .major = 9, .minor = 0, .multiprocessors = 132, .shared_bytes = 227 << 10, .versions = {}};
}

AttentionProblem problem(int64_t B, int64_t T, int64_t H, int64_t D) {
  AttentionProblem p;
  p.batch = B, p.time = T, p.heads = H, p.head_dim = D;
  p.dtype = DType::kBF16;
  return p;
}

TEST(GroupScratch, IsWhatTheGeneratedCodeTakes) {
  int64_t most = 0;
  for (const test::GroupCase& c : test::group_cases())
    for (const Shape& space : test::group_spaces(c)) {
      Graph graph = test::make_group(c, space[0], space[1]);
      int64_t bytes = generate_group(graph.nodes()[0]).workspace_bytes;
      EXPECT_EQ(group_workspace_bytes(graph.nodes()[0]), bytes) << c.name << ' ' << space[0] << 'x' << space[1];
      most = std::max(most, bytes);
    }
  EXPECT_GT(most, 0);
}

// By hand: dP in 16 bits and a float a row, of as many sequences as 1 GiB of dP holds and the batch is a multiple of.
TEST(CudnnScratch, GradientRunsInParts) {
  AttentionProblem p = problem(64, 1024, 12, 64);  // 24 MiB of dP a sequence
  EXPECT_EQ(cudnn_grad_batch(p), 32);
  EXPECT_EQ(cudnn_grad_scratch_bytes(p), 32 * 12 * 1024 * (2 * 1024 + 4));
  EXPECT_EQ(cudnn_grad_batch(problem(43, 1024, 12, 64)), 1) << "a prime larger than what fits";
  EXPECT_EQ(cudnn_grad_batch(problem(2, 32768, 12, 64)), 1) << "one at least";
  p.any_order = true;
  EXPECT_EQ(cudnn_grad_batch(p), 64);
  EXPECT_EQ(cudnn_grad_scratch_bytes(p), 64 * 12 * 1024 * (4 * 64 + 4));
}

TEST(CudnnScratch, KnowsWhatCudnnNeverTakes) {
  AttentionProblem p = problem(2, 128, 2, 64);
  EXPECT_EQ(cudnn_may_support(p), has_cudnn());
  p.head_dim = 20;
  EXPECT_FALSE(cudnn_may_support(p));
  p = problem(2, 128, 2, 64);
  p.dropout = 0.1;
  EXPECT_FALSE(cudnn_may_support(p));
  p = problem(2, 128, 2, 64);
  p.dtype = DType::kF32;
  EXPECT_FALSE(cudnn_may_support(p));
}

TEST(OwnAttentionScratch, ByHand) {
  auto bytes = [](const AttentionProblem& p) { return hopper_grad_scratch_bytes(p, 132); };
  // Of a row two floats and a sixteenth of a counter; of dQ sums for each block's head, for each shared one, or both.
  constexpr int64_t kRows = 8 * 12 * 1024 + 12 * 1024 / 4, kSum = 1024 * 256;
  EXPECT_EQ(bytes(problem(64, 1024, 12, 64)), 64 * kRows + 132 * kSum);
  EXPECT_EQ(bytes(problem(1, 1024, 12, 64)), kRows + 12 * kSum);
  EXPECT_EQ(bytes(problem(16, 1024, 12, 64)), 16 * kRows + (60 + 132) * kSum);
  // Of columns, 12 * 64 floats a warp of dQ and a tile of dout; with dropout a warp and tile of dV, with documents of
  // dQ.
  AttentionProblem with_sums = problem(64, 1024, 12, 64);
  with_sums.sums = true;
  EXPECT_EQ(bytes(with_sums), 64 * kRows + 132 * kSum + 64 * (8 + 8) * 12 * 256);
  with_sums.dropout = 0.1;
  EXPECT_EQ(bytes(with_sums), 64 * kRows + 132 * kSum + 64 * (8 + 8 * 8) * 12 * 256);
  with_sums.documents = true;
  EXPECT_EQ(bytes(with_sums), 64 * kRows + 132 * kSum + 64 * (8 * 8 + 8 * 8) * 12 * 256);
  // Of heads of 128 an eighth of a counter a row, twice the sums; of columns half a warp of dQ has each.
  constexpr int64_t kWideRows = 8 * 6 * 1024 + 6 * 1024 / 2, kWideSum = 2 * kSum;
  EXPECT_EQ(bytes(problem(1, 1024, 6, 128)), kWideRows + 6 * kWideSum);
  EXPECT_EQ(bytes(problem(44, 1024, 6, 128)), 44 * kWideRows + 132 * kWideSum);
  with_sums = problem(44, 1024, 6, 128);
  with_sums.sums = true;
  EXPECT_EQ(bytes(with_sums), 44 * kWideRows + 132 * kWideSum + 44 * (4 + 8) * 6 * 512);
  EXPECT_EQ(blocked_grad_scratch_bytes(problem(2, 8192, 4, 64)), 2 * 4 * 8192 * 4);
}

// A node attention_grad of GPT-2 124M, perhaps with another number of heads.
Graph attention_grad(int64_t batch, DType dtype, double dropout = 0, bool sums = false, int64_t heads = 12) {
  Graph graph("grad");
  GraphBuilder g(graph);
  ValueType qkv{dtype, {batch, 1024, 3 * 768}}, out{dtype, {batch, 1024, 768}};
  ValueIds in{g.input("qkv", qkv), g.input("out", out), g.input("lse", {DType::kF32, {batch, heads, 1024}}),
              g.input("dout", out)};
  if (dropout > 0) in.push_back(g.input("rng", {DType::kI32, {2}}));
  Attrs attrs{{"heads", heads}, {"causal", true}, {"scale", 0.125}, {"dropout", dropout}, {"stream", int64_t(0)}};
  if (sums) attrs.set("sums", true);
  g.add(op::attention_grad, in, attrs);
  return graph;
}

int64_t of_attention_grad(const DeviceInfo& info, int64_t batch, DType dtype, double dropout = 0, bool sums = false) {
  Graph graph = attention_grad(batch, dtype, dropout, sums);
  return scratch_bytes(info, graph, graph.nodes()[0]);
}

TEST(AttentionScratch, IsOfTheKernelsThatAreChosen) {
  AttentionProblem p = problem(16, 1024, 12, 64);
  int64_t blocked = blocked_grad_scratch_bytes(p);
  EXPECT_EQ(of_attention_grad(h200(), 16, DType::kBF16), hopper_grad_scratch_bytes(p, 132));
  EXPECT_EQ(of_attention_grad(h200(), 16, DType::kF32), blocked);
  EXPECT_EQ(of_attention_grad(h200(), 16, DType::kBF16, 0.1), hopper_grad_scratch_bytes(p, 132));
  EXPECT_EQ(of_attention_grad(h200(), 16, DType::kF32, 0.1), blocked);
  DeviceInfo a100 = h200();
  a100.major = 8;
  EXPECT_EQ(of_attention_grad(a100, 16, DType::kBF16), has_cudnn() ? cudnn_grad_scratch_bytes(p) : blocked);
  EXPECT_EQ(of_attention_grad(a100, 16, DType::kBF16, 0, true), 0) << "sums by the reference on the host";
  p.sums = true;
  EXPECT_EQ(of_attention_grad(h200(), 16, DType::kBF16, 0, true), hopper_grad_scratch_bytes(p, 132));
  p.dropout = 0.1;
  EXPECT_EQ(of_attention_grad(h200(), 16, DType::kBF16, 0.1, true), hopper_grad_scratch_bytes(p, 132));
  a100.shared_bytes = 1024;  // too little for a tile: the reference on the host
  EXPECT_EQ(of_attention_grad(a100, 16, DType::kF32), 0);
}

// By the kernels for Hopper alone, where they are chosen.
TEST(AttentionSums, AreForSomeNodes) {
  auto gives = [](const DeviceInfo& info, const Graph& graph) {
    return attention_has_extras(info, graph, graph.nodes()[0]);
  };
  DeviceInfo a100 = h200();
  a100.major = 8;
  for (DType low : {DType::kBF16, DType::kF16}) {
    EXPECT_TRUE(gives(h200(), attention_grad(16, low)));
    EXPECT_FALSE(gives(a100, attention_grad(16, low)));
    EXPECT_TRUE(gives(h200(), attention_grad(16, low, 0.1)));
    EXPECT_TRUE(gives(h200(), attention_grad(16, low, 0, false, 6))) << "heads of 128";
    EXPECT_FALSE(gives(h200(), attention_grad(16, low, 0, false, 24))) << "heads of 32";
  }
  EXPECT_FALSE(gives(h200(), attention_grad(16, DType::kF32)));
}

// The gradient of the bias of q, k and v needs no pass over dqkv of its own.
TEST(AttentionSums, AreInTheStepOfAnH200) {
  auto count = [](Precision precision, std::vector<std::string> disabled) {
    RunConfig config;
    config.train.batch = 16;
    config.compile.precision = precision;
    config.compile.disable_passes = std::move(disabled);
    Graph graph = compile_step(config, nominal_platform()).programs[0].plan.graph;
    return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                         [](const Node& node) { return node.attrs.get_bool("sums", false); });
  };
  EXPECT_EQ(count(Precision::kBf16, {}), 12);
  EXPECT_EQ(count(Precision::kFp16, {}), 12);
  EXPECT_EQ(count(Precision::kBf16, {"attention_sums"}), 0);
  EXPECT_EQ(count(Precision::kFp32, {}), 0);
}

// Nor do its forms in eight bits.
TEST(AttentionFloat8, IsInTheStepOfAnH200) {
  auto count = [](bool asked, std::vector<std::string> disabled) {
    RunConfig config;
    config.train.batch = 16;
    config.compile.precision = Precision::kFp8;
    config.compile.fp8_attention = asked;
    config.compile.disable_passes = std::move(disabled);
    Graph graph = compile_step(config, nominal_platform()).programs[0].plan.graph;
    return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                         [](const Node& node) { return node.attrs.get_bool("float8", false); });
  };
  EXPECT_EQ(count(true, {}), 12 + 12) << "and what attention gives";
  EXPECT_EQ(count(false, {}), 0);
  EXPECT_EQ(count(true, {"attention_float8"}), 0);
}

// Weight gradients are cut into parts; what fills the device by itself, or has a short sum, is not.
TEST(MatmulScratch, IsOfPartialSums) {
  MatmulProblem p;
  p.m = 768, p.n = 768, p.k = 16384;
  EXPECT_EQ(expected_workspace_bytes(p, 132), 22 * 768 * 768 * 4);
  p.k = 511;
  EXPECT_EQ(expected_workspace_bytes(p, 132), 0);
  p.m = 16384, p.n = 3072, p.k = 768;
  EXPECT_EQ(expected_workspace_bytes(p, 132), 0);
  for (int64_t m = 16; m < 70000; m = m * 3 / 2 + 1)
    for (int64_t n = 16; n < 70000; n = n * 3 / 2 + 1) {
      p.m = m, p.n = n, p.k = 1 << 20;
      EXPECT_LE(expected_workspace_bytes(p, 132), 128 * kMiB) << m << 'x' << n;
    }
}

// What steps of GPT-2 124M took on an H200 (bench/results, 2026-11-21): no more than planned, and planned not much
// more.
TEST(StepScratch, HoldsWhatAnH200Took) {
  auto scratch = [](int64_t batch, bool top, Precision precision) {
    RunConfig config;
    config.train.batch = batch;
    config.compile.precision = precision;
    config.compile.low_residual = top;
    if (!top) config.compile.disable_passes = {"fuse", "flash_attention", "fused_optimizer", "chunked_classifier"};
    CompiledStep step = compile_step(config, nominal_platform());
    EXPECT_LT(double(step.scratch_bytes()), 0.02 * double(step.total_bytes()));
    return step.scratch_bytes();
  };
  EXPECT_GE(scratch(16, true, Precision::kBf16), 36175872);
  EXPECT_GE(scratch(64, true, Precision::kBf16), 42467328);
  EXPECT_GE(scratch(16, false, Precision::kBf16), 35389440);
  EXPECT_GE(scratch(16, false, Precision::kFp32), 50331648);
}

}  // namespace
}  // namespace tokamak::cuda
