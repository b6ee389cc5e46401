// Which nodes a GPU has kernels for, without asking one. That kernels then agree: model/reference_gpu_test.cpp.
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cudnn_attention.h"
#include "compile/step_compiler.h"
#include "config/cluster.h"
#include "config/config.h"
#include "ops/attention.h"
#include "ops/context_attention.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "run/reference_nodes.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

#include <map>

namespace tokamak::cuda {
namespace {

std::string without_kernel(const RunConfig& config) {
  Platform platform = nominal_platform();
  return list_kernels(find_reference_nodes(compile_step(config, platform), *platform.kernels));
}

TEST(HasKernel, OfEveryNodeOfAStep) {
  for (Precision precision :
       {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16, Precision::kFp8}) {
    RunConfig config;
    config.train.batch = 16;
    config.compile.precision = precision;
    EXPECT_EQ(without_kernel(config), "") << precision_name(precision);
    config.model.dropout = 0.1;
    config.data.mask_documents = true;
    config.train.total_batch = 2 * config.train.batch * config.model.context;
    EXPECT_EQ(without_kernel(config), "") << precision_name(precision) << ", with dropout, documents and accumulation";
  }
}

TEST(HasKernel, OfEveryNodeOfARank) {
  for (Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp8}) {
    RunConfig config;
    config.train.batch = 16;
    config.compile.precision = precision;
    config.mesh = {.context = 4};
    EXPECT_EQ(without_kernel(config), "") << precision_name(precision);
    config.mesh = {.data = 2, .context = 2, .tensor = 2, .zero = 3};
    EXPECT_EQ(without_kernel(config), "") << precision_name(precision) << ", on 8 ranks";
    config.model.dropout = 0.1;
    config.data.mask_documents = true;
    EXPECT_EQ(without_kernel(config), "") << precision_name(precision) << ", with dropout and documents";
  }
}

// Of the weights of a step's MLPs, whose products have eight bits: the types that their gradients come in.
std::map<DType, int> gradients_in_eight_bits(const MeshConfig& mesh) {
  RunConfig config;
  config.train.batch = 16;
  config.compile.precision = Precision::kFp8;
  config.mesh = mesh;
  CompiledStep step = compile_step(config, nominal_platform());
  const Graph& graph = step.programs[0].plan.graph;
  std::map<DType, int> counts;
  for (const Node& node : graph.nodes()) {
    if (node.op != &op::matmul && node.op != &op::fused_matmul) continue;
    MatmulForm form = read_matmul(graph, node);
    counts[form.output] += is_float8(graph.dtype(node.inputs[0])) && form.trans_a == form.trans_b;
  }
  return counts;
}

// What ranks add up is not rounded to bf16 before, nor widened by a kernel of its own.
TEST(HasKernel, GradientsInEightBitsAreWideWhereRanksAddThem) {
  EXPECT_EQ(gradients_in_eight_bits({.data = 2})[DType::kF32], 36);
  EXPECT_EQ(gradients_in_eight_bits({})[DType::kBF16], 36) << "which the optimizer reads as they are";
}

// Forward and backward pass of attention of one layer on one of two ranks.
std::pair<int, int> attention_nodes(int64_t heads, double dropout) {
  RunConfig config;
  config.model.layers = 1, config.model.heads = heads, config.model.dropout = dropout;
  config.train.batch = 16;
  config.compile.precision = Precision::kBf16;
  config.mesh = {.context = 2, .slots = 1};
  CompiledStep step = compile_step(config, nominal_platform());
  int whole = 0, of_parts = 0;
  for (const Node& node : step.programs[0].plan.graph.nodes()) {
    whole += node.op == &op::context_attention || node.op == &op::context_attention_grad;
    of_parts += node.op == &op::attention || node.op == &op::attention_grad;
  }
  return {whole, of_parts};
}

TEST(HasKernel, AttentionOfARankIsInPartsWhereCudnnDoesThem) {
  EXPECT_EQ(attention_nodes(12, 0), std::pair(2, 0)) << "heads of 64, for Hopper";
  EXPECT_EQ(attention_nodes(12, 0.1), std::pair(2, 0));
  EXPECT_EQ(attention_nodes(6, 0), std::pair(2, 0)) << "heads of 128, for Hopper";
  EXPECT_EQ(attention_nodes(24, 0), has_cudnn() ? std::pair(0, 6) : std::pair(2, 0)) << "heads of 32";
  EXPECT_EQ(attention_nodes(24, 0.1), std::pair(2, 0)) << "which cuDNN does not do";
}

TEST(HasKernel, NotOfAttentionWithHeadsThatNoBlockHolds) {
  RunConfig config;
  config.model.layers = 1, config.model.heads = 1, config.model.width = 1024;
  config.compile.precision = Precision::kFp32;
  EXPECT_EQ(without_kernel(config), "attention x1, attention_grad x1");
}

// The links of a step that is explained without a cluster are those of a plan for it.
TEST(NominalPlatform, HasTheLinksOfItsCluster) {
  Target target = nominal_platform().target;
  LinkConfig within = read_cluster("h200").within;
  EXPECT_EQ(target.link("data").bandwidth, within.bandwidth.value);
  EXPECT_EQ(target.link("data").seconds, within.latency.value);
}

}  // namespace
}  // namespace tokamak::cuda
