#include "model/utilization.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Utilization, PeaksOfTheDatasheetByNameAndPrecision) {
  Target h200{.name = "NVIDIA H200"};
  EXPECT_EQ(peak_of(h200, Precision::kBf16).flops, 989e12);
  EXPECT_EQ(peak_of(h200, Precision::kFp16).flops, 989e12);
  EXPECT_EQ(peak_of(h200, Precision::kTf32).flops, 494e12);
  EXPECT_EQ(peak_of(h200, Precision::kFp32).flops, 67e12);
  EXPECT_EQ(peak_of(h200, Precision::kBf16).name, "989 TFLOP/s (H200 datasheet, bf16 dense)");
  EXPECT_EQ(peak_of({.name = "NVIDIA H100 80GB HBM3"}, Precision::kBf16).flops, 989e12);
  EXPECT_EQ(peak_of({.name = "NVIDIA H100 PCIe"}, Precision::kBf16).flops, 756e12);
  EXPECT_EQ(peak_of({.name = "NVIDIA A100-SXM4-80GB"}, Precision::kTf32).flops, 156e12);
  EXPECT_EQ(peak_of({.name = "NVIDIA A100-PCIE-40GB"}, Precision::kBf16).name,
            "312 TFLOP/s (A100 datasheet, bf16 dense)");
  EXPECT_EQ(peak_of({.name = "NVIDIA GeForce RTX 4090"}, Precision::kBf16).flops, 165e12);
  EXPECT_EQ(peak_of({.name = "NVIDIA B200"}, Precision::kFp32).flops, 75e12);
}

TEST(Utilization, OtherMachinesAreComparedWithTheirOwnMatmuls) {
  for (const char* name : {"AMD EPYC", "NVIDIA H200 MIG 1g.18gb", "NVIDIA GeForce RTX 4090 Laptop GPU"}) {
    Target target{.name = name, .f32_flops = 2e12, .bf16_flops = 8e12, .tf32_flops = 4e12};
    EXPECT_EQ(peak_of(target, Precision::kFp32).flops, 2e12) << name;
    EXPECT_EQ(peak_of(target, Precision::kTf32).flops, 4e12) << name;
    EXPECT_EQ(peak_of(target, Precision::kBf16).flops, 8e12) << name;
    EXPECT_NE(peak_of(target, Precision::kBf16).name.find("matmul rate"), std::string::npos) << name;
  }
}

TEST(Utilization, IsTheModelsWorkOverThePeak) {
  Utilization used = utilization({.full = 8e6, .causal = 6e6}, 1000, 16e9);
  EXPECT_DOUBLE_EQ(used.flops, 8e9);
  EXPECT_DOUBLE_EQ(used.full, 0.5);
  EXPECT_DOUBLE_EQ(used.causal, 0.375);
  EXPECT_EQ(utilization({.full = 8e6, .causal = 6e6}, 1000, 0).full, 0) << "of what is not known";
}

TEST(Utilization, NamesThePeakOfAllRanks) {
  Peak peak = peak_of({.name = "NVIDIA H200"}, Precision::kBf16);
  EXPECT_EQ(peak.of_ranks(1), peak.name);
  EXPECT_EQ(peak.of_ranks(4), "4 x 989 TFLOP/s (H200 datasheet, bf16 dense)");
}

}  // namespace
}  // namespace tokamak
