// Which nodes a GPU has kernels for, without asking one. That kernels then agree: model/reference_gpu_test.cpp.
#include "backend/cuda/cuda_backend.h"
#include "config/config.h"
#include "train/reference_nodes.h"
#include "train/step_compiler.h"

#include <gtest/gtest.h>

namespace tokamak::cuda {
namespace {

std::string without_kernel(const RunConfig& config) {
  Platform platform = nominal_platform();
  return list_kernels(find_reference_nodes(compile_step(config, platform), *platform.kernels));
}

TEST(HasKernel, OfEveryNodeOfAStep) {
  for (Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16}) {
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
  for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
    RunConfig config;
    config.train.batch = 16;
    config.compile.precision = precision;
    config.mesh = {.context = 4};
    EXPECT_EQ(without_kernel(config), "") << precision_name(precision);
    config.mesh = {.data = 2, .context = 2, .tensor = 2, .zero = 3};
    EXPECT_EQ(without_kernel(config), "") << precision_name(precision) << ", on 8 ranks";
  }
}

TEST(HasKernel, NotOfAttentionWithHeadsThatNoBlockHolds) {
  RunConfig config;
  config.model.layers = 1, config.model.heads = 1, config.model.width = 1024;
  config.compile.precision = Precision::kFp32;
  EXPECT_EQ(without_kernel(config), "attention x1, attention_grad x1");
}

}  // namespace
}  // namespace tokamak::cuda
