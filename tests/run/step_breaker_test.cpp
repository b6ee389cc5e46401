#include "run/step_breaker.h"

#include <gtest/gtest.h>

#include <map>

#include "backend/cpu/cpu_backend.h"
#include "run/random_batch.h"
#include "run/session.h"
#include "tests/support/resolve_first.h"
#include "tests/support/tiny_step.h"

namespace tokamak {
namespace {

RunConfig two_micro_batches() {
  RunConfig config = test::tiny_step();
  config.train.total_batch = 2 * config.train.batch * config.model.context;
  return config;
}

using Tensors = std::map<std::string, std::vector<std::byte>>;  // by name, without what a step leaves behind

struct TinyRun {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Session session = make_session(two_micro_batches(), cpu::nominal_platform(), *backend);

  TinyRun() { session.initialise(); }
  StepResult step(int64_t number) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < session.micro_batches(); ++i)
      batches.push_back(random_batch(two_micro_batches(), uint64_t(10 * number + i)));
    return session.run_step(batches, number, 1e-2);
  }
  Tensors tensors() const {
    Tensors all;
    for (const std::string& name : session.store().names()) {
      if (is_scratch(session.store().spec(name).role)) continue;
      all[name].resize(size_t(num_bytes(session.store().type(name))));
      session.store().read(name, all[name].data(), int64_t(all[name].size()));
    }
    return all;
  }
};

// The names of those that differ.
std::string differences(const Tensors& a, const Tensors& b) {
  std::string names;
  for (const auto& [name, bytes] : a)
    if (bytes != b.at(name)) names += name + " ";
  return names;
}

// Runs the first step, to be broken behind so many kernels; whether it was.
bool is_broken_after(int kernels, TinyRun& run) {
  int asked = 0;
  StepBreaker breaker(run.session, *run.backend, [&] { return asked++ >= kernels; });
  run.session.observe(&breaker);
  try {
    run.step(0);
    return false;
  } catch (const StepBroken&) {
    return true;
  }
}

// At every kernel in turn: nothing has happened, until it is too late and the step is whole.
TEST(StepBreaker, LeavesAStepWholeOrUndone) {
  TinyRun broken;
  Tensors before = broken.tensors();
  int kernels = 0;
  for (; is_broken_after(kernels, broken); ++kernels) ASSERT_EQ(differences(broken.tensors(), before), "") << kernels;
  EXPECT_GT(kernels, 10);
  TinyRun undisturbed, whole;
  undisturbed.step(0);
  EXPECT_FALSE(is_broken_after(kernels, whole));
  EXPECT_EQ(differences(whole.tensors(), undisturbed.tensors()), "");
  EXPECT_NE(differences(whole.tensors(), before), "");
}

}  // namespace
}  // namespace tokamak
