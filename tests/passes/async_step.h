// What the tests of async_products and async_scatters share.
#pragma once

#include "config/mesh_config.h"
#include "passes/step_mesh.h"
#include "tests/passes/replaced.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"
#include "tests/support/graph_text.h"

#include <string>

namespace tokamak::test {

/// The context of a step over tensor ranks. Products may store and read more matrices.
inline PassContext async_context(const MeshConfig& config, Precision precision, bool async) {
  PassContext context;
  context.options.precision = precision;
  context.mesh = step_mesh(config);
  context.zero = config.zero;
  context.sequence = true;
  context.async_tensor = async;
  context.bucket_mib = 1;
  context.target.streams = 2;
  context.target.launch_seconds = 0;
  context.target.matmul_argument = context.target.matmul_operand = true;
  return context;
}

/// Of a device whose launches take no time.
inline PassContext free_launches() {
  PassContext context;
  context.target.launch_seconds = 0;
  return context;
}

/// The step as all passes leave it.
inline Graph compiled(Graph step, const PassContext& context) {
  run_passes(step, PassStage::kStep, context);
  return step;
}

}  // namespace tokamak::test
