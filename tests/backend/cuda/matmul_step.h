// The matmuls of a whole training step.
#pragma once

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/matmul_problem.h"
#include "backend/cuda/matmul_shares.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "tests/support/resolve_first.h"

#include <map>
#include <string>

namespace tokamak::test {

struct StepMatmuls {
  std::map<std::string, cuda::MatmulNode> matmuls;
  std::map<std::string, double> shares;  // see matmul_shares
};

/// Those of GPT-2 124M at batch 64 by key. Reading throws where a pass made a group of a form that the GPU lacks.
inline StepMatmuls matmuls_of_step(Precision precision) {
  RunConfig config;
  config.train.batch = 64;
  config.compile.precision = precision;
  config.compile.disable_passes = {"chunked_classifier"};  // its matmuls are inside
  CompiledStep step = compile_step(config, cuda::nominal_platform());
  const Plan& plan = step.programs[0].plan;
  StepMatmuls found;
  std::vector<double> seconds(plan.graph.nodes().size());
  for (const Launch& launch : plan.launches) seconds[size_t(launch.node)] = launch.seconds;
  found.shares = cuda::matmul_shares(plan.graph, seconds);
  for (const Node& node : plan.graph.nodes()) {
    if (node.op != &op::matmul && node.op != &op::fused_matmul) continue;
    cuda::MatmulNode read = cuda::matmul_node(plan.graph, node);
    found.matmuls[read.problem.key()] = read;
  }
  return found;
}

}  // namespace tokamak::test
