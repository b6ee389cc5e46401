// The products that the classifier's kernel is made of. No GPU is needed.
#include "backend/cuda/classifier_parts.h"

#include "backend/cuda/matmul_problem.h"
#include "graph/builder.h"
#include "ops/classifier.h"

#include <gtest/gtest.h>

namespace tokamak::cuda {
namespace {

std::string key_of(const Graph& part) { return matmul_node(part, part.nodes().back()).problem.key(); }

TEST(ClassifierParts, HaveTheFormatOfTheirNode) {
  for (DType dtype : {DType::kF32, DType::kBF16})
    for (bool tf32 : {false, true}) {
      if (tf32 && dtype != DType::kF32) continue;
      ClassifierSizes sizes{64, 32, 128, 16, 128, dtype, tf32 ? NumberFormat::kTf32 : format_of(dtype, false)};
      std::string wanted = tf32 ? "tf32" : std::string(dtype_name(dtype));
      EXPECT_EQ(key_of(classifier_logits(sizes, 16)), wanted + " 16x128x32 nt");
      EXPECT_EQ(key_of(classifier_dx(sizes, 16)), wanted + " 16x32x128 nn");
      for (bool adds : {false, true}) {
        std::string key = key_of(classifier_dweight(sizes, 16, adds));
        EXPECT_EQ(key.rfind(wanted, 0), 0u) << key;
      }
    }
}

TEST(ClassifierParts, OfEightBits) {
  ClassifierSizes sizes{
      64, 32, 128, 16, 128, DType::kBF16, NumberFormat::kBf16, {}, NumberFormat::kF8E4M3, NumberFormat::kF8E5M2};
  EXPECT_EQ(key_of(classifier_logits(sizes, 16)), "f8e4m3>bf16 scaled 16x128x32 nt");
  EXPECT_EQ(key_of(classifier_dx(sizes, 16)), "f8e5m2*f8e4m3>bf16 scaled 16x32x128 nt");
  EXPECT_EQ(key_of(classifier_dweight(sizes, 16, false)), "f8e5m2*f8e4m3>f32 scaled 128x32x16 tt");
  EXPECT_EQ(key_of(classifier_dweight(sizes, 16, true)), "f8e5m2*f8e4m3>f32 scaled 128x32x16 tt +c");
}

}  // namespace
}  // namespace tokamak::cuda
