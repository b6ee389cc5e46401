// The text that a model in training writes now and then, by the ranks that together have all of its parameters. Tests:
// tests/e2e/mesh_run_test.cpp.
#pragma once

#include "run/generator.h"
#include "run/run_data.h"
#include "run/session.h"
#include "run/step_queue.h"

namespace tokamak {

class RunSamples {
 public:
  /// Memory is taken now rather than for the first sample, where it would end a run that has begun; none where no
  /// samples are wanted (train.sample_every) or other ranks write them. The session and what it was made of must
  /// outlive it.
  RunSamples(const Session& session, const Platform& platform, Backend& backend, const MeshRanks* ranks);

  int64_t planned_bytes() const { return generator_ ? generator_->planned_bytes() : 0; }

  /// A sample by the parameters as they are, computed on the queue's thread; all ranks call it. None where other ranks
  /// have it, nor where one rank alone writes it and `stop` says so between two tokens.
  std::optional<std::string> write(StepQueue& queue, const RunData& data, const std::function<bool()>& stop);

 private:
  const Session& session_;
  bool gathers_;                      // parameters, of which the ranks of axis tensor together lack some
  std::unique_ptr<MeshRanks> ranks_;  // that write together from their parts; null: who leads writes alone
  std::unique_ptr<Generator> generator_;
};

}  // namespace tokamak
