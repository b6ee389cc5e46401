#include "run/step_runner.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace tokamak {
namespace {

// States of which micro-batches have their own are made before a program asks for one.
void make_buffers(const CompiledStep& step, TensorStore& store) {
  std::vector<StoredTensor> tensors;
  std::set<std::string_view> known;  // several programs have one
  for (const CompiledGraph& program : step.programs)
    for (const Argument& argument : program.plan.graph.arguments()) {
      if (argument.kind == Argument::Kind::kInput || !known.insert(argument.name).second) continue;
      const ValueType& type = program.plan.graph.type(argument.value);
      if (auto buffers = step.buffers.find(argument.name); buffers != step.buffers.end())
        tensors.push_back({argument.name, type, argument.spec, buffers->second});
      if (auto odd = step.odd_states.find(argument.name); odd != step.odd_states.end())
        tensors.push_back({odd->second, type, argument.spec});
    }
  store.make(tensors);
}

}  // namespace

StepRunner::StepRunner(const CompiledStep& step, Backend& backend, TensorStore& store, const RunnerOptions& options)
    : runs_(step.runs), arena_bytes_(step.largest().plan.arena_bytes),
      arena_(options.lender && options.lender->arena_bytes_ >= arena_bytes_ ? options.lender->arena_
                                                                            : backend.allocate(arena_bytes_)),
      transfers_(options.ranks, backend, store) {
  make_buffers(step, store);
  for (const CompiledGraph& program : step.programs)
    programs_.push_back(std::make_unique<Program>(
        program.plan, backend, store,
        ProgramOptions{
            .ranks = options.ranks, .arena = arena_, .record = options.record, .odd_states = &step.odd_states}));
}

void StepRunner::observe(WorkObserver* observer) {
  for (const std::unique_ptr<Program>& program : programs_) program->observe(observer);
  transfers_.observe(observer);
}

void StepRunner::change_after(HostCopies& copies) {
  for (const std::unique_ptr<Program>& program : programs_) program->change_after(copies);
}

void StepRunner::run_again(Program& program, const Again& again) {
  again.set_inputs(program, again.micro_batch);
  program.run(again.micro_batch);
  again.read(program);
}

void StepRunner::run(const Before& set_inputs, const After& read, int64_t micro_batches, const Again* again) {
  for (const ProgramRun& run : runs_) {
    if (run.micro_batch >= micro_batches) continue;
    if (run.transfer) {
      transfers_.start(*run.transfer, run.micro_batch);
      continue;
    }
    Program& program = *programs_[run.program];
    if (again && run.micro_batch >= 0) run_again(program, *std::exchange(again, nullptr));
    set_inputs(program, run.micro_batch);
    transfers_.wait_for(program, run.micro_batch);
    program.run(std::max<int64_t>(run.micro_batch, 0));
    read(program);
  }
  transfers_.wait_for_all();
}

}  // namespace tokamak
