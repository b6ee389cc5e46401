// Whether a GPU has kernels for what optimizers compute. No GPU is needed.
#include "autodiff/optimizer_rule.h"
#include "backend/cuda/cuda_backend.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "config/gpus.h"
#include "run/reference_nodes.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// A node without a kernel runs on the host, where a step takes minutes.
TEST(OptimizerKernels, AreThereForEveryRuleAndFamily) {
  Platform platform = cuda::nominal_platform(gpu_model("h200"));
  for (const OptimizerRule* rule : optimizer_rules())
    for (const char* family : {"gpt2", "llama"}) {
      RunConfig run;
      run.model = {.family = family, .layers = 2, .heads = 4, .width = 256, .context = 128, .vocab = 512};
      if (run.model.family == "llama") run.model.kv_heads = 2;
      run.optimizer.name = rule->name;
      run.compile.precision = Precision::kBf16;
      run.train.batch = 4;
      CompiledStep step = compile_step(resolve(run, platform.target), platform);
      std::vector<ReferenceNode> nodes = find_reference_nodes(step, *platform.kernels);
      EXPECT_TRUE(nodes.empty()) << rule->name << " of " << family << ": no kernel for " << list_kernels(nodes);
    }
}

}  // namespace
}  // namespace tokamak
