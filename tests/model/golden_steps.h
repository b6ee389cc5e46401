// A Session's AdamW steps against the golden values.
#pragma once

#include "run/session.h"
#include "tests/model/golden.h"

namespace tokamak::test {

/// How far off losses may be, in shares of the first one, norms 5 times that; and parameters after all steps.
struct StepTolerance {
  double loss, after;
};
inline constexpr StepTolerance kFloatSteps{5e-6, 1e-4};

inline void check_after(const Golden& golden, const std::string& name, const std::vector<float>& got,
                        double tolerance) {
  std::vector<float> expected = golden.floats("after." + name);
  EXPECT_TRUE(has_noise(name) ? close_to("after." + name, without_noise(got), without_noise(expected), tolerance)
                              : close_to("after." + name, got, expected, tolerance));
}

/// All steps from the golden parameters; on ranks, of which each calls it, what is trained is compared on the first.
inline void take_golden_steps(Session& session, const Golden& golden, const StepTolerance& t,
                              const MeshRanks* ranks = nullptr) {
  for (const ParameterInfo& info : session.parameters())
    session.store().write_share(info.name, golden.floats("param." + info.name).data());
  std::vector<float> losses = golden.floats("losses"), norms = golden.floats("grad_norms");
  int64_t sequences = golden.batch() / session.micro_batches();
  for (int64_t step = 0; step < golden.steps(); ++step) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < session.micro_batches(); ++i)
      batches.push_back(golden.batch_of(step, i * sequences, sequences));
    StepResult result = session.run_step(batches, step, golden.optimizer().lr);
    EXPECT_NEAR(result.loss, losses[size_t(step)], t.loss * losses[0]) << "step " << step;
    EXPECT_NEAR(result.grad_norm, norms[size_t(step)], 5 * t.loss * norms[0]) << "step " << step;
  }
  for (const ParameterInfo& info : session.parameters()) {
    std::vector<float> values(size_t(num_elements(info.shape)));
    session.store().read_whole(info.name, values.data());
    if (leads(ranks)) check_after(golden, info.name, values, t.after);
  }
}

}  // namespace tokamak::test
