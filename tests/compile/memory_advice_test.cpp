// A GPU that is too small for the batch: what the error tells to set does fit.
#include "compile/memory_advice.h"

#include "compile/step_compiler.h"
#include "config/config.h"
#include "run/session.h"
#include "tests/support/expect_error.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tokamak {
namespace {

RunConfig small_run() {
  RunConfig config;
  config.model.layers = 4, config.model.heads = 2, config.model.width = 64, config.model.context = 128;
  config.model.vocab = 512;
  config.train.batch = 48;
  config.compile.precision = Precision::kFp32;
  return config;
}

Target small_gpu() { return {.name = "small GPU"}; }

int64_t bytes_of(const RunConfig& config) { return compile_step(config, small_gpu()).total_bytes(); }

RunConfig with_batch(RunConfig config, int64_t batch) {
  config.train.total_batch = config.step_tokens();
  config.train.batch = batch;
  return config;
}

TEST(MemoryAdvice, NamesTheLargestMicroBatchThatFits) {
  RunConfig config = small_run();
  int64_t available = bytes_of(with_batch(config, 16));
  std::vector<MemoryRemedy> remedies = find_memory_remedies(resolve(config, small_gpu()), small_gpu(), available);
  ASSERT_FALSE(remedies.empty());
  EXPECT_EQ(remedies[0].settings, "--train.batch=16 --train.total_batch=6144");
  EXPECT_EQ(remedies[0].effect, "the same step in 3 parts");
  EXPECT_EQ(remedies[0].bytes, available);
  EXPECT_GT(bytes_of(with_batch(config, 24)), available);
}

TEST(MemoryAdvice, WhatItNamesFitsAndIsTheSameStep) {
  RunConfig config = small_run();
  int64_t whole = bytes_of(config), found = 0;
  for (double share : {0.95, 0.7, 0.5, 0.3, 0.2, 0.1})
    for (const MemoryRemedy& remedy :
         find_memory_remedies(resolve(config, small_gpu()), small_gpu(), int64_t(double(whole) * share))) {
      ++found;
      EXPECT_LE(double(bytes_of(remedy.config)), double(whole) * share) << remedy.settings;
      EXPECT_EQ(bytes_of(remedy.config), remedy.bytes) << remedy.settings;
      EXPECT_EQ(remedy.config.step_tokens(), config.step_tokens()) << remedy.settings;
    }
  EXPECT_GE(found, 8);
}

TEST(MemoryAdvice, RecomputesWhereThatIsEnough) {
  RunConfig config = small_run();
  std::vector<MemoryRemedy> remedies =
      find_memory_remedies(resolve(config, small_gpu()), small_gpu(), bytes_of(config) * 8 / 10);
  ASSERT_EQ(remedies.size(), 2u);
  EXPECT_EQ(remedies[1].config.train.batch, config.train.batch);
  EXPECT_EQ(remedies[1].settings.rfind("--compile.memory_budget_gib=0.", 0), 0u) << remedies[1].settings;
}

// 0 would mean no limit.
TEST(MemoryAdvice, ABudgetOfFewBytesIsWrittenInFull) {
  RunConfig config = small_run();
  config.model.layers = 2, config.model.width = 16, config.model.context = 16, config.model.vocab = 32;
  config.train.batch = 1;
  int64_t whole = bytes_of(config), found = 0;
  ASSERT_LT(whole, 10 << 20) << "hundredths of a GiB would be 0";
  for (double share : {0.99, 0.95, 0.9, 0.8, 0.7, 0.5, 0.1})
    for (const MemoryRemedy& remedy :
         find_memory_remedies(resolve(config, small_gpu()), small_gpu(), int64_t(double(whole) * share))) {
      ++found;
      const std::string key = "--compile.memory_budget_gib=";
      ASSERT_EQ(remedy.settings.rfind(key, 0), 0u) << remedy.settings;
      double typed = std::stod(remedy.settings.substr(key.size()));
      EXPECT_GT(typed, 0) << remedy.settings;
      EXPECT_EQ(typed, remedy.config.compile.memory_budget_gib) << "what is typed is what was tried";
      EXPECT_LE(double(bytes_of(remedy.config)), double(whole) * share);
    }
  EXPECT_GT(found, 0);
}

TEST(MemoryAdvice, ANoteForWhatIsOnlyPlanned) {
  RunConfig config = small_run();
  CompiledStep step = compile_step(config, small_gpu());
  EXPECT_EQ(too_large_note(step, small_gpu(), step.total_bytes()), "");
  std::string note = too_large_note(step, small_gpu(), bytes_of(with_batch(config, 16)));
  EXPECT_EQ(note.rfind("does not fit: ", 0), 0u) << note;
  EXPECT_NE(note.find("it fits with --train.batch=16 --train.total_batch=6144"), std::string::npos) << note;
}

TEST(MemoryAdvice, ABudgetThatCannotBeMetIsComparedInUnitsThatShowIt) {
  EXPECT_EQ(budget_warning(3 << 20, 0), "");
  EXPECT_EQ(budget_warning(1 << 20, 1.0 / 1024), "");
  std::string warning = budget_warning(3 << 20, 0.0009765625);
  EXPECT_NE(warning.find("memory_budget_gib = 0.0009765625 cannot be met: it is 1.00 MiB"), std::string::npos)
      << warning;
  EXPECT_NE(warning.find("take 3.00 MiB"), std::string::npos) << warning;
}

TEST(MemoryAdvice, SaysThatNothingFits) {
  EXPECT_TRUE(find_memory_remedies(resolve(small_run(), small_gpu()), small_gpu(), 1 << 20).empty());
  EXPECT_NE(memory_advice(resolve(small_run(), small_gpu()), small_gpu(), 1 << 20).find("use a smaller model"),
            std::string::npos);
}

// Of which nothing may be asked.
class UntouchedBackend : public Backend {
 public:
  std::unique_ptr<Memory> allocate(int64_t) override { return touched(); }
  std::unique_ptr<Kernel> compile(const Graph&, const Node&) override { return touched(); }
  void copy_in(void*, const void*, int64_t) override { touched(); }
  void copy_out(void*, const void*, int64_t) override { touched(); }
  void copy(void*, const void*, int64_t) override { touched(); }
  int64_t used_bytes() const override { return 0; }
  int64_t free_bytes() const override { return 0; }

 private:
  static std::nullptr_t touched() { throw std::logic_error("the backend was used"); }
};

TEST(MemoryAdvice, IsInTheErrorBeforeAnythingIsAllocated) {
  RunConfig config = small_run();
  int64_t available = bytes_of(with_batch(config, 16));
  UntouchedBackend backend;
  expect_user_error([&] { make_session(config, small_gpu(), backend, available); },
                    {"[memory] expected a plan of at most", "got a peak of",
                     "it fits with --train.batch=16 --train.total_batch=6144 (the same step in 3 parts: "});
}

}  // namespace
}  // namespace tokamak
