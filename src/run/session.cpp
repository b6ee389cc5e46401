#include "run/session.h"

#include "autodiff/loss_scaling.h"
#include "base/error.h"
#include "base/parallel.h"
#include "compile/memory_advice.h"
#include "data/document_starts.h"
#include "model/initial_elements.h"
#include "run/rank_decisions.h"
#include "run/step_inputs.h"
#include "tune/tune.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

namespace tokamak {
namespace {

// Programs take turns with parameters, states and the arena, and checkpoints are read between them: whoever plans a
// stream that goes on into the next run has to call Program::end_streams wherever something else may come between.
void require_ended_streams(const CompiledStep& step) {
  for (const CompiledGraph& program : step.programs)
    for (const PlannedStream& stream : program.plan.streams)
      TOKAMAK_CHECK(stream.ends_with_run, "stream '{}' of '{}' does not end with the run", stream.name, program.name());
}

// What is not a number has many bits.
uint64_t step_digest(uint64_t parameters, double loss, double grad_norm) {
  uint64_t digest = parameters, index = 0;
  for (double value : {loss, grad_norm})
    for (int shift : {0, 32}) {
      uint64_t bits = std::isnan(value) ? ~uint64_t(0) : std::bit_cast<uint64_t>(value);
      digest += element_digest(digest_salt("step"), index++, uint32_t(bits >> shift));
    }
  return digest;
}

}  // namespace

LossProgram::LossProgram(const CompiledStep& step, Backend& backend, TensorStore& store, const RunnerOptions& options)
    : runner_(step, backend, store, options), weighted_(step.resolved.asked.data.mask_documents) {
  const MeshRanks* ranks = options.ranks;
  if (ranks && step.resolved.has_slots() && step.resolved.data_ranks() > 1) sharing_ = &ranks->along(kDataAxis);
}

std::vector<double> LossProgram::run(std::span<const Batch> batches) {
  if (!sharing_) return run_part(batches, 0, 1);
  std::vector<double> mine = run_part(batches, sharing_->rank(), sharing_->size()), losses;
  std::string_view bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double));
  std::vector<std::string> all = sharing_->exchange(bytes);
  for (size_t i = 0; i < batches.size(); ++i)
    for (const std::string& theirs : all)
      std::memcpy(&losses.emplace_back(), theirs.data() + i * sizeof(double), sizeof(double));
  return losses;
}

std::vector<double> LossProgram::run_part(std::span<const Batch> batches, int64_t part, int64_t parts) {
  std::vector<std::unique_ptr<Readback>> told;
  auto targets_of = [&](size_t i) { return part_of(batches[i].targets, part, parts); };
  auto counted = [&](size_t i) { return double(std::max<int64_t>(count_targets(targets_of(i)), 1)); };
  auto set = [&](Program& program, int64_t i) {
    InputValues values;
    auto weight = float(1 / counted(size_t(i)));
    add_batch(values, batches[size_t(i)], weight, part, parts);
    set_inputs(program, values);
  };
  auto read = [&](const Program& program) {
    if (program.has_result("loss")) told.push_back(program.read_scalar("loss"));
  };
  runner_.run(set, read, int64_t(batches.size()));
  TOKAMAK_CHECK(told.size() == batches.size(), "{} batches at once, not {}", told.size(), batches.size());
  std::vector<double> losses;
  for (size_t i = 0; i < told.size(); ++i) {
    double loss = scalar_of(*told[i]);
    // Else the graph's own weight is that of targets that all count.
    losses.push_back(weighted_ ? loss : loss * double(targets_of(i).size()) / counted(i));
  }
  return losses;
}

CompiledRun compile_to_fit(const ResolvedRun& run, const Platform& platform, int64_t available_bytes,
                           const MeshRanks* ranks) {
  if (!ranks)
    require_one_rank(run);
  else
    TOKAMAK_CHECK(run.mesh == ranks->mesh(), "ranks of another mesh than the run's");
  CompiledRun compiled = compile_run(run, platform);
  if (available_bytes > 0) require_fits(compiled.fullest(), platform, available_bytes);
  return compiled;
}

Session::Session(const ResolvedRun& run, const Platform& platform, Backend& backend, int64_t available_bytes,
                 const MeshRanks* ranks)
    : Session(compile_to_fit(run, platform, available_bytes, ranks), platform, backend, ranks) {}

Session::Session(CompiledRun compiled_run, const Platform& platform, Backend& backend, const MeshRanks* ranks)
    : platform_(platform), backend_(backend), ranks_(ranks), run_(std::move(compiled_run)),
      stage_(ranks ? ranks->coordinate(kPipeAxis) : 0), parameters_(model_parameters(resolved().asked.model)),
      store_(std::make_unique<TensorStore>(backend, ranks)) {
  require_ended_streams(compiled());
  if (leads(ranks)) choose_for_other_stages(run_.stages, stage_, backend);  // while there is memory to time them on
  store_->make(kept_tensors(run_));  // in the model's order, whatever programs read
  RunnerOptions options{.ranks = ranks, .record = resolved().compile.cuda_graph};
  runner_ = std::make_unique<StepRunner>(compiled(), backend, *store_, options);
  if (resolved().asked.train.verify_every > 0)
    slot_check_ = std::make_unique<SlotCheck>(compiled(), *store_, backend, *ranks);
  if (resolved().asked.train.digest_every > 0) digest_ = std::make_unique<ParameterDigest>(*store_, backend, ranks);
  if (resolved().compile.strict) refuse_reference_nodes(reference_nodes());
}

void Session::initialise() {
  InitialValues values(parameters_, resolved().asked.train.seed);
  initialise(values);
}

void Session::initialise(InitialValues& initial) {
  for (const ParameterInfo& parameter : parameters_) {
    InitialValues::Values values = initial.take();
    store_->write_share(parameter.name, values.data.get());
  }
  initialise_states();
}

void Session::initialise_shares() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterInfo& parameter = parameters_[i];
    if (!store_->is_here(parameter.name)) continue;
    std::vector<PartRun> runs = store_->share(parameter.name);
    std::vector<float> values(size_t(num_elements(store_->type(parameter.name).shape)));  // zeros where it is padded
    parallel_for(int64_t(runs.size()), 1, [&](int64_t begin, int64_t end, int) {
      for (const PartRun& run : std::span(runs).subspan(size_t(begin), size_t(end - begin)))
        init_elements(parameter, int64_t(i), resolved().asked.train.seed, run.whole,
                      std::span(values).subspan(size_t(run.part), size_t(run.count)));
    });
    store_->write(parameter.name, values.data(), int64_t(values.size() * sizeof(float)));
  }
  initialise_states();
}

void Session::initialise_states() {
  auto scale = float(resolved().compile.loss_scale);
  if (store_->contains(kLossScale)) store_->write(kLossScale, &scale, sizeof scale);
}

void PendingStep::read(const Program& program) {
  auto take = [&](const char* name, std::unique_ptr<Readback>& to) {
    if (program.has_result(name)) to = program.read_scalar(name);
  };
  if (program.has_result("loss")) losses_.push_back(program.read_scalar("loss"));
  take("loss_scale", loss_scale_);
  take("skipped", skipped_);
  take("grad_norm", grad_norm_);
}

StepResult PendingStep::wait() {
  StepResult result;
  for (auto& loss : losses_) result.loss += scalar_of(*loss) / double(losses_.size());
  result.grad_norm = scalar_of(*grad_norm_);
  result.applied = std::isfinite(result.grad_norm);
  if (loss_scale_) result.loss_scale = scalar_of(*loss_scale_);
  if (skipped_) result.skipped = int64_t(scalar_of(*skipped_));
  if (digest_) result.digest = step_digest(ParameterDigest::sum(digest_->wait()), result.loss, result.grad_norm);
  if (ranks_) ranks_->world().check();
  return result;
}

StepResult Session::run_step(std::span<const Batch> batches, int64_t step, double lr) {
  return submit_step(batches, step, lr).wait();
}

PendingStep Session::submit_step(std::span<const Batch> batches, int64_t step, double lr) {
  TOKAMAK_CHECK(int64_t(batches.size()) == micro_batches(), "a step takes {} batches", micro_batches());
  PendingStep pending;
  pending.ranks_ = ranks_;
  const RunConfig& asked = resolved().asked;
  int64_t parts = resolved().slots.ranks.size;  // of a batch, one a data rank
  float rate = float(lr), share = float(asked.model.window_share(step)),
        weight = asked.data.mask_documents ? loss_weight(batches, parts) : 0;
  auto set_of = [&](Program& program, int64_t data_rank, int64_t micro_batch) {
    InputValues values{{"lr", bytes_of(rate)}, {"window_share", bytes_of(share)}};
    int64_t part = parts == 1 ? micro_batch : compiled().slot_of(data_rank, micro_batch);
    int32_t rng[2] = {random_seed(asked.train.seed), int32_t(step * micro_batches() * parts + part)};
    if (micro_batch >= 0) {
      add_batch(values, batches[size_t(part / parts)], weight, part % parts, parts);
      values["rng"] = bytes_of(rng);
    }
    set_inputs(program, values);
  };
  int64_t data_rank = ranks_ ? ranks_->coordinate(kDataAxis) : 0, running = -1;
  bool is_checked = slot_check_ && slot_check_->is_due(step + 1);
  SlotTurn turn = is_checked ? slot_check_->turn(step + 1) : SlotTurn();
  auto set = [&](Program& program, int64_t micro_batch) { set_of(program, data_rank, running = micro_batch); };
  auto read = [&](const Program& program) {
    pending.read(program);
    if (is_checked && running == turn.run) slot_check_->take_first(turn.run);
  };
  StepRunner::Again again{
      .micro_batch = turn.run,
      .set_inputs = [&](Program& program, int64_t micro_batch) { set_of(program, turn.of_rank, micro_batch); },
      .read = [&](const Program&) { slot_check_->take_again(turn.run); }};
  runner_->run(set, read, micro_batches(), is_checked ? &again : nullptr);
  if (digest_ && (step + 1) % asked.train.digest_every == 0) pending.digest_ = digest_->take();
  settled_changes_ = changes();
  return pending;
}

std::string Session::compare_slots(int64_t step) {
  TOKAMAK_CHECK(slot_check_, "step {} has no slots to compare", step);
  return slot_check_->compare(step);
}

void Session::observe(WorkObserver* observer) {
  observer_ = observer;
  runner_->observe(observer ? observer : else_observer_);
}

void Session::observe_else(WorkObserver* observer) {
  if (std::exchange(else_observer_, observer) != observer) observe(observer_);
}

HostCopies& Session::copies() {
  if (!copies_) {
    copies_ = backend_.make_host_copies();
    runner_->change_after(*copies_);
  }
  return *copies_;
}

int64_t Session::changes() const {
  int64_t changes = 0;
  for (const auto& program : runner_->programs()) changes += program->changes();
  return changes;
}

// As with the step's programs, the rank that leads chooses kernels, and the others wait for that.
void Session::make_eval() {
  std::vector<CompiledStep> steps = compile_loss(resolved(), platform_, run_.first_block);
  if (leads(ranks_))
    choose_for_other_stages(steps, stage_, backend_);
  else
    await_choices(ranks_, platform_.tuning, backend_);
  RunnerOptions options{.ranks = ranks_, .lender = runner_.get()};
  eval_ = std::make_unique<LossProgram>(steps[size_t(stage_)], backend_, *store_, options);
  if (ranks_ && leads(ranks_)) give_choices(ranks_, platform_.tuning, backend_);
}

std::vector<double> Session::evaluate(std::span<const Batch> batches) {
  if (!eval_) make_eval();
  return eval_->run(batches);
}

std::vector<ReferenceNode> Session::reference_nodes() const {
  std::vector<ReferenceNode> nodes;
  for (const auto& program : runner_->programs())
    for (int node : program->nodes_by_reference()) nodes.push_back({&program->plan().graph, node});
  return nodes;
}

bool Session::records() const {
  const auto& programs = runner_->programs();
  return std::any_of(programs.begin(), programs.end(), [](const auto& program) { return program->records(); });
}

int64_t Session::workspace_bytes() const {
  int64_t bytes = 0;
  for (const auto& program : runner_->programs()) bytes += program->workspace_bytes();
  return bytes;
}

}  // namespace tokamak
