// What chunks of the classifier do to the memory plan of GPT-2 124M.
#include "compile/step_compiler.h"
#include "config/config.h"
#include "config/preset.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr int64_t kBatch = 64;

CompiledStep compile(bool chunked, double budget_gib = 0) {
  RunConfig config;
  config.train.batch = kBatch;
  config.compile.precision = Precision::kBf16;
  if (!chunked) config.compile.disable_passes = {"chunked_classifier"};
  config.compile.memory_budget_gib = budget_gib;
  Target target;
  target.chunked_classifier = true;
  return compile_step(config, target);
}

int64_t chunk_rows(const CompiledStep& step) {
  for (const Node& node : step.programs[0].plan.graph.nodes())
    if (node.op->name == "classifier") return node.attrs.get_int("chunk");
  return 0;
}

TEST(ChunkedClassifier, SavesAllLogitsButOneChunk) {
  CompiledStep plain = compile(false), chunked = compile(true);
  int64_t logits = kBatch * 1024 * 50304 * 2;
  EXPECT_EQ(chunk_rows(plain), 0);
  EXPECT_EQ(chunk_rows(chunked), 16384);
  RecordProperty("plain_bytes", std::to_string(plain.total_bytes()));
  RecordProperty("chunked_bytes", std::to_string(chunked.total_bytes()));
  // Logits stood beside all activations; the chunk takes a quarter of them, dx and dW a little.
  EXPECT_LT(chunked.total_bytes(), plain.total_bytes() - logits * 2 / 3);
}

TEST(ChunkedClassifier, TakesSmallerChunksUnderABudget) {
  EXPECT_EQ(chunk_rows(compile(true, 20)), 16384);
  EXPECT_EQ(chunk_rows(compile(true, 4)), 8192);
}

}  // namespace
}  // namespace tokamak
