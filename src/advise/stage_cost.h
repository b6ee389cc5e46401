// What a compiled step takes, program by program, as numbers that grow evenly with its blocks: those of many blocks
// follow from two steps of few. Tests: tests/advise/block_costs_test.cpp.
#pragma once

#include "advise/costs_by_kind.h"
#include "compile/compiled_step.h"
#include "plan/pipe_schedule.h"

#include <map>
#include <string>

namespace tokamak {

struct ProgramCost {
  TimeByKind time;
  double arena = 0, scratch = 0, inputs = 0;  // bytes
  double alone = 0;                           // of its seconds, those before it waits for other stages of a pipeline
};

/// What writes a state that each micro-batch has for itself, and what is the last to read it; no transfers.
struct StateLife {
  PipeAction::Kind first = PipeAction::Kind::kForward, last = PipeAction::Kind::kForward;
  auto operator<=>(const StateLife&) const = default;
};

struct StageCost {
  std::map<std::string, ProgramCost> programs;  // by name; of a pipeline's chunk without its number
  MemoryByKind kept;                            // parameters and states that all micro-batches share
  std::map<StateLife, double> of_micro_batch;   // bytes of a micro-batch, in a pipeline
  bool exchanges_gradients = false;             // with another stage, before the update
  double residual = 0;                          // bytes that a stage sends to the next one, of a micro-batch

  double intermediate() const;  // the largest arena
  double fixed() const;         // bytes of all else, but for what micro-batches hold
};

/// Of a stage with one chunk or a step without a pipeline, at the rates of this platform: those that it was compiled
/// for may have been others.
StageCost stage_cost(const CompiledStep& step, const Platform& platform);

/// less + share x (more - less): of so many blocks between or beyond two numbers, or of values computed again.
StageCost mix(const StageCost& less, const StageCost& more, double share);

}  // namespace tokamak
