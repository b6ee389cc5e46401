#include "scaling/model_shape.h"

#include "config/preset.h"
#include "model/model.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

ModelConfig preset(const char* name) {
  ModelConfig model;
  model.preset = name;
  apply_preset(model);
  return model;
}

// GPT-2 124M: 12 blocks of 12 x 768^2 and some; 50257 tokens and 1024 positions of 768.
TEST(ModelShape, CountsWithAndWithoutTables) {
  ParameterCounts counts = count_both(preset("gpt2-124m"));
  EXPECT_EQ(counts.all, 124439808);
  EXPECT_EQ(counts.of_blocks, 124439808 - (50257 + 1024) * 768);
  ParameterCounts untied = count_both(preset("llama2-7b"));
  EXPECT_EQ(untied.all - untied.of_blocks, 2 * 32000 * 4096);
}

TEST(ModelShape, PublishedSizesComeOutAsTheyAre) {
  for (const char* name : {"gpt2-124m", "gpt3-6.7b", "gpt3-13b", "gpt3-175b"}) {
    ModelConfig known = preset(name);
    ModelConfig shape = shape_near(known, double(count_parameters(known)));
    EXPECT_EQ(shape.layers, known.layers) << name;
    EXPECT_EQ(shape.width, known.width) << name;
    EXPECT_TRUE(shape.preset.empty());
  }
}

// Of any size and family, in proportions that kernels like.
TEST(ModelShape, IsNearTheNumberThatIsAskedFor) {
  for (const char* family : {"gpt2", "llama", "modern"})
    for (double parameters = 30e6; parameters < 1e12; parameters *= 3.1) {
      ModelConfig base;
      base.family = family;
      ModelConfig shape = shape_near(base, parameters);
      EXPECT_NEAR(double(count_parameters(shape)) / parameters, 1, 0.15) << family << " " << parameters;
      EXPECT_EQ(shape.width % shape.heads, 0);
      double ratio = double(shape.width) / double(shape.layers);
      EXPECT_GE(ratio, 40) << family << " " << parameters;
      EXPECT_LE(ratio, 165) << family << " " << parameters;
    }
}

// What of another size would not fit is not kept.
TEST(ModelShape, KeepsNothingOfAnotherSize) {
  ModelConfig shape = shape_near(preset("llama3-8b"), 1e9);
  EXPECT_EQ(shape.family, "llama");
  EXPECT_EQ(shape.kv_heads, 0);
  EXPECT_EQ(shape.hidden, 0);
  EXPECT_EQ(shape.vocab, 128256);
}

}  // namespace
}  // namespace tokamak
