#include "compile/compiled_run.h"

#include "model/model.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

#include <map>

namespace tokamak {
namespace {

RunConfig tiny(int64_t pipe) {
  RunConfig config;
  config.model = {.layers = 4, .heads = 2, .width = 8, .context = 4, .vocab = 13};
  config.train.batch = 2;
  config.train.total_batch = 4 * 2 * 4;
  config.compile.precision = Precision::kFp32;
  config.mesh.pipe = pipe;
  return config;
}

TEST(CompiledRun, IsAStepOrAStageEach) {
  CompiledRun one = compile_run(tiny(1), Target()), two = compile_run(tiny(2), Target());
  EXPECT_EQ(one.stages.size(), 1u);
  EXPECT_EQ(two.stages.size(), 2u);
  EXPECT_EQ(two.first_block.size(), 3u);
  EXPECT_GT(two.seconds, 0);
  EXPECT_LT(two.fullest().total_bytes(), one.fullest().total_bytes());
}

// As files have them, and each with the stages that have it.
TEST(CompiledRun, KeepsParametersInTheModelsOrder) {
  RunConfig config = tiny(2);
  std::vector<ParameterInfo> parameters = model_parameters(config.model);
  std::vector<StoredTensor> kept = kept_tensors(compile_run(config, Target()));
  ASSERT_GT(kept.size(), 3 * parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) EXPECT_EQ(kept[i].name, parameters[i].name);
  std::map<std::string, std::vector<int64_t>> stages;
  for (const StoredTensor& tensor : kept) {
    EXPECT_FALSE(is_scratch(tensor.spec.role)) << tensor.name;
    stages[tensor.name] = tensor.stages;
  }
  EXPECT_EQ(stages.at("wte.weight"), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(stages.at("step"), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(stages.at("wpe.weight"), (std::vector<int64_t>{0}));
  EXPECT_EQ(stages.at("adam.m.ln_f.weight"), (std::vector<int64_t>{1}));
}

TEST(CompiledRun, TellsTheLossOnEveryStage) {
  RunConfig config = tiny(2);
  config.train.total_batch = 2 * 2 * 4;
  std::vector<CompiledStep> stages =
      compile_loss(resolve(config, {}), Target(), compile_run(config, Target()).first_block);
  ASSERT_EQ(stages.size(), 2u);
  for (const CompiledStep& stage : stages) EXPECT_NE(stage.programs.back().plan.graph.find_result("loss"), kNoValue);
  EXPECT_EQ(print_runs(stages[0]), "eval 0, send stream.1 0, eval 1, send stream.1 1, tell_loss 0-1");
  EXPECT_EQ(print_runs(stages[1]), "receive stream.1 0, eval 0, receive stream.1 1, eval 1, tell_loss 0-1");
}

}  // namespace
}  // namespace tokamak
