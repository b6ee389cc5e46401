#include "train/utilization.h"

#include <gtest/gtest.h>

#include "config/model_config.h"
#include "model/gpt.h"

namespace tokamak {
namespace {

// GPT-2 124M by hand: 50257 x 768 token embeddings; 12 blocks of 12 x 768 x 768 weights, 13 x 768 other parameters;
// a final norm of 2 x 768; 1024 x 768 positions, which do not count.
constexpr int64_t kCounted = 50257 * 768 + 12 * (12 * 768 * 768 + 13 * 768) + 2 * 768;

TEST(Utilization, CountsTheWeightsThatATokenMeets) {
  EXPECT_EQ(kCounted, 123'653'376);
  ModelConfig model;
  EXPECT_EQ(count_multiplied_parameters(model), kCounted);
  EXPECT_EQ(count_parameters(model), kCounted + 1024 * 768);
  model.tie_weights = false;  // one of the two matrices is only looked up
  EXPECT_EQ(count_multiplied_parameters(model), kCounted);
}

TEST(Utilization, FlopsPerTokenOfAKnownModel) {
  FlopsPerToken flops = flops_per_token(ModelConfig());
  EXPECT_DOUBLE_EQ(flops.full, 6.0 * 123'653'376 + 12.0 * 12 * 768 * 1024);  // 855,166,464
  EXPECT_DOUBLE_EQ(flops.full, 855'166'464);
  EXPECT_DOUBLE_EQ(flops.causal, 798'543'360);
}

TEST(Utilization, PeaksOfTheDatasheetByNameAndPrecision) {
  Target h200{.name = "NVIDIA H200"};
  EXPECT_EQ(peak_of(h200, "bf16").flops, 989e12);
  EXPECT_EQ(peak_of(h200, "fp16").flops, 989e12);
  EXPECT_EQ(peak_of(h200, "tf32").flops, 494e12);
  EXPECT_EQ(peak_of(h200, "fp32").flops, 67e12);
  EXPECT_EQ(peak_of(h200, "bf16").name, "989 TFLOP/s (H200 datasheet, bf16 dense)");
  EXPECT_EQ(peak_of({.name = "NVIDIA H100 80GB HBM3"}, "bf16").flops, 989e12);
  EXPECT_EQ(peak_of({.name = "NVIDIA H100 PCIe"}, "bf16").flops, 756e12);
  EXPECT_EQ(peak_of({.name = "NVIDIA A100-SXM4-80GB"}, "tf32").flops, 156e12);
  EXPECT_EQ(peak_of({.name = "NVIDIA GeForce RTX 4090"}, "bf16").flops, 165e12);
  EXPECT_EQ(peak_of({.name = "NVIDIA B200"}, "fp32").flops, 75e12);
}

TEST(Utilization, OtherMachinesAreComparedWithTheirOwnMatmuls) {
  for (const char* name : {"AMD EPYC", "NVIDIA H200 MIG 1g.18gb", "NVIDIA GeForce RTX 4090 Laptop GPU"}) {
    Target target{.name = name, .f32_flops = 2e12, .bf16_flops = 8e12, .tf32_flops = 4e12};
    EXPECT_EQ(peak_of(target, "fp32").flops, 2e12) << name;
    EXPECT_EQ(peak_of(target, "tf32").flops, 4e12) << name;
    EXPECT_EQ(peak_of(target, "bf16").flops, 8e12) << name;
    EXPECT_NE(peak_of(target, "bf16").name.find("matmul rate"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tokamak
