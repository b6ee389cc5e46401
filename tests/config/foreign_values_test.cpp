#include "config/foreign_values.h"

#include <gtest/gtest.h>

#include "config/preset.h"

namespace tokamak {
namespace {

std::string hint(std::string_view preset) { return value_hint("model.preset", preset, preset_choices()); }

TEST(ForeignValues, HabitualNamesOfModels) {
  for (const char* name : {"gpt2", "GPT-2", "gpt2-small", "openai-community/gpt2"})
    EXPECT_EQ(hint(name), "; that is 'gpt2-124m' here") << name;
  EXPECT_EQ(hint("gpt2-medium"), "; that is 'gpt2-355m' here");
  EXPECT_EQ(hint("gpt2_large"), "; that is 'gpt2-774m' here");
  EXPECT_EQ(hint("gpt2-xl"), "; that is 'gpt2-1558m' here");
  EXPECT_EQ(hint("gpt2-1.5b"), "; that is 'gpt2-1558m' here");
  EXPECT_EQ(hint("meta-llama/Meta-Llama-3-8B"), "; that is 'llama3-8b' here");
}

TEST(ForeignValues, ElseTheNearest) {
  EXPECT_EQ(hint("meta-llama/Llama-3.1-405B"), "; that is 'llama3-405b' here");
  EXPECT_EQ(hint("llama-3-8b"), "; did you mean 'llama3-8b'?");
  EXPECT_EQ(hint("llama3.1-8b"), "; did you mean 'llama3-8b'?");
  EXPECT_EQ(hint("Qwen/Qwen2.5-0.5B"), "; did you mean 'qwen2.5-0.5b'?");
  EXPECT_EQ(hint("gpt2-1558"), "; did you mean 'gpt2-1558m'?");
  EXPECT_EQ(hint("smollm"), "; did you mean 'smollm-135m' or 'smollm-360m'?");
  EXPECT_EQ(hint("bert-base-uncased"), "");
  EXPECT_EQ(hint("-"), "");
}

TEST(ForeignValues, OfOtherOptions) {
  std::vector<std::string> precisions = {"auto", "fp32", "tf32", "bf16", "fp16", "fp8"};
  EXPECT_EQ(value_hint("compile.precision", "bfloat16", precisions), "; that is 'bf16' here");
  EXPECT_EQ(value_hint("compile.precision", "BF16", precisions), "; did you mean 'bf16'?");
  EXPECT_EQ(value_hint("data.token_type", "bfloat16", {"uint16", "uint32"}), "") << "a name of another option";
  EXPECT_EQ(value_hint("cluster", "A100", {"dgx-a100", "h200"}), "; did you mean 'dgx-a100'?");
  EXPECT_EQ(value_hint("mesh.schedule", "1F1B", {"1f1b", "gpipe"}), "; did you mean '1f1b'?");
}

// A preset that was renamed would be recommended no more.
TEST(ForeignValues, OursAreAmongTheChoices) {
  for (const char* name :
       {"gpt2", "gpt2medium", "gptj", "gpt3", "llama", "llama13b", "llama65b", "llama3", "mistral", "nano"})
    EXPECT_NE(hint(name), "") << name;
  EXPECT_EQ(value_hint("model.preset", "gpt2", {"small"}), "");
}

}  // namespace
}  // namespace tokamak
