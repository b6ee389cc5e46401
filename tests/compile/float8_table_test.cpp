#include "compile/float8_table.h"

#include "config/config.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

std::string table_of(Precision precision, int64_t width, double fp8_flops, int64_t stages = 1, bool attention = true) {
  Target target;
  target.bf16_flops = 1e9;
  target.fp8_flops = fp8_flops;
  target.memory_bandwidth = 1e12;
  target.launch_seconds = 0;
  target.chunked_classifier = true;
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = width, .context = 32, .vocab = 128};
  config.compile.precision = precision;
  config.compile.fp8_attention = attention;
  config.train.batch = 8;
  config.train.total_batch = 2 * 8 * 32;
  config.mesh.pipe = stages;
  return float8_table(resolve(config, target), Platform(target));
}

void expect_line(const std::string& text, const std::string& line) {
  EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << "\n" << text;
}

TEST(Float8Table, SaysWhichProductsHaveEightBitsAndWhyOthersHaveNot) {
  std::string text = table_of(Precision::kFp8, 64, 1.7e9);
  expect_line(text, "     2 x attn.c_attn                 eight bits");
  expect_line(text, "     2 x mlp.c_proj                  eight bits");
  expect_line(text, "     1 x classifier's three          eight bits");
  expect_line(text, "     2 x attn.c_proj                 eight bits");
  expect_line(table_of(Precision::kFp8, 64, 1.7e9, 1, false),
              "     2 x attn.c_proj                 bf16: the range of an operand is not known");
  expect_line(table_of(Precision::kFp8, 64, 1.0000001e9),
              "     2 x attn.c_attn                 bf16: casts would take more than it saves");
  expect_line(table_of(Precision::kFp8, 24, 1.7e9),
              "     2 x attn.c_attn                 bf16: sizes are no multiples of 16");
}

// A stage without the loss, whose last gradient another stage sends.
TEST(Float8Table, CountsTheProductsOfAllStages) {
  EXPECT_EQ(table_of(Precision::kFp8, 64, 1.7e9, 2), table_of(Precision::kFp8, 64, 1.7e9));
}

TEST(Float8Table, IsEmptyWithoutThePass) { EXPECT_EQ(table_of(Precision::kBf16, 64, 1.7e9), ""); }

}  // namespace
}  // namespace tokamak
