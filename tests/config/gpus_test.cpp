#include "config/gpus.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

TEST(Gpus, EachIsFoundByItsOwnName) {
  ASSERT_GE(gpu_models().size(), 10u);
  for (const std::string& model : gpu_models()) {
    GpuConfig gpu = gpu_model(model);
    EXPECT_EQ(gpu.model, model);
    EXPECT_GT(gpu.half_flops.value, 1e14) << model;
    std::optional<GpuConfig> found = find_gpu("NVIDIA " + gpu.name + " of some kind");
    ASSERT_TRUE(found) << model;
    EXPECT_EQ(found->model, model);
  }
}

TEST(Gpus, TheLongestNameCounts) {
  EXPECT_EQ(find_gpu("NVIDIA H100 PCIe")->model, "h100-pcie");
  EXPECT_EQ(find_gpu("NVIDIA H100 80GB HBM3")->model, "h100");
  EXPECT_EQ(find_gpu("NVIDIA A100-SXM4-40GB")->model, "a100-40gb");
  EXPECT_EQ(find_gpu("NVIDIA A100-PCIE-40GB")->model, "a100");
  EXPECT_FALSE(find_gpu("AMD EPYC"));
  EXPECT_FALSE(find_gpu("NVIDIA H200 MIG 1g.18gb"));
}

TEST(Gpus, AnUnknownOneIsRefusedWithTheNearest) {
  expect_user_error([] { gpu_model("h20"); }, {"[gpu.model] expected a known GPU", "did you mean 'h200'"});
}

}  // namespace
}  // namespace tokamak
