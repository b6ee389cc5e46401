#include "train/session.h"

#include "base/error.h"
#include "data/document_starts.h"
#include "train/memory_advice.h"

#include <algorithm>
#include <cstring>

namespace tokamak {
namespace {

CompiledStep compile_checked(const RunConfig& config, const Platform& platform, int64_t available_bytes) {
  CompiledStep compiled = compile_step(config, platform);
  if (available_bytes > 0) require_fits(compiled, config, platform, available_bytes);
  return compiled;
}

int64_t largest_arena(const CompiledStep& step) {
  return std::max(step.step.plan.arena_bytes, step.update ? step.update->plan.arena_bytes : 0);
}

// With documents, `loss_weight` is what the sum of the batch's losses is multiplied by.
void set_batch(Program& program, const Batch& batch, double loss_weight) {
  program.set_input("tokens", batch.tokens.data(), int64_t(batch.tokens.size()) * 4);
  program.set_input("targets", batch.targets.data(), int64_t(batch.targets.size()) * 4);
  if (!program.has_input("documents")) return;
  TOKAMAK_CHECK(batch.documents.size() == batch.tokens.size(), "the batch does not say where its documents begin");
  auto weight = float(loss_weight);
  program.set_input("documents", batch.documents.data(), int64_t(batch.documents.size()) * 4);
  program.set_input("loss_weight", &weight, sizeof weight);
}

// With which the mean over the batches is the mean over all their targets that count; 0 when none does.
double loss_weight(std::span<const Batch> batches) {
  int64_t counted = 0;
  for (const Batch& batch : batches) counted += count_targets(batch.targets);
  return counted > 0 ? double(batches.size()) / double(counted) : 0;
}

}  // namespace

LossProgram::LossProgram(const RunConfig& config, const Platform& platform, Backend& backend, TensorStore& store,
                         std::shared_ptr<Memory> arena, int64_t arena_bytes)
    : LossProgram(compile_inference(gpt_eval_graph(config.model, config.train.batch, config.model.context,
                                                   config.data.mask_documents),
                                    config, platform)
                      .plan,
                  backend, store, std::move(arena), arena_bytes) {}

LossProgram::LossProgram(Plan plan, Backend& backend, TensorStore& store, std::shared_ptr<Memory> arena,
                         int64_t arena_bytes)
    : held_bytes_(plan.input_bytes + (plan.arena_bytes > arena_bytes ? plan.arena_bytes : 0)),
      program_(plan, backend, store, {.arena = plan.arena_bytes > arena_bytes ? nullptr : arena}) {}

double LossProgram::run(const Batch& batch) {
  set_batch(program_, batch, loss_weight({&batch, 1}));
  program_.run();
  return double(program_.get_scalar("loss"));
}

Session::Session(const RunConfig& config, const Platform& platform, Backend& backend, int64_t available_bytes)
    : platform_(platform), backend_(backend), compiled_(compile_checked(config, platform, available_bytes)),
      parameters_(gpt_parameters(config.model)), store_(backend), arena_bytes_(largest_arena(compiled_)),
      arena_(backend.allocate(arena_bytes_)), step_(compiled_.step.plan, backend, store_, options()) {
  if (compiled_.update) update_ = std::make_unique<Program>(compiled_.update->plan, backend, store_, options());
}

ProgramOptions Session::options() const { return {.arena = arena_, .record = config().compile.cuda_graph}; }

void Session::initialise() {
  InitialValues values(parameters_, config().train.seed);
  initialise(values);
}

void Session::initialise(InitialValues& initial) {
  for (const ParameterInfo& parameter : parameters_) {
    InitialValues::Values values = initial.take();
    store_.write(parameter.name, values.data.get(), values.count * int64_t(sizeof(float)));
  }
  initialise_states();
}

void Session::initialise_states() {
  auto scale = float(config().compile.loss_scale);
  if (scales_loss()) store_.write("scaler.scale", &scale, sizeof scale);
}

StepResult PendingStep::wait() {
  auto scalar = [](Readback& readback) {
    float value = 0;
    std::memcpy(&value, readback.wait().data(), sizeof value);
    return double(value);
  };
  StepResult result;
  for (auto& loss : losses_) result.loss += scalar(*loss) / double(losses_.size());
  result.grad_norm = scalar(*grad_norm_);
  if (loss_scale_) result.loss_scale = scalar(*loss_scale_);
  if (skipped_) result.skipped = int64_t(scalar(*skipped_));
  return result;
}

StepResult Session::run_step(std::span<const Batch> batches, int64_t step, double lr) {
  return submit_step(batches, step, lr).wait();
}

PendingStep Session::submit_step(std::span<const Batch> batches, int64_t step, double lr) {
  TOKAMAK_CHECK(int64_t(batches.size()) == micro_batches(), "a step takes {} batches", micro_batches());
  PendingStep pending;
  auto rate = float(lr);
  double weight = config().data.mask_documents ? loss_weight(batches) : 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    set_batch(step_, batches[i], weight);
    int32_t rng[2] = {int32_t(config().train.seed), int32_t(step * micro_batches() + int64_t(i))};
    if (step_.has_input("rng")) step_.set_input("rng", rng, sizeof rng);
    if (!update_) step_.set_input("lr", &rate, sizeof rate);
    step_.run();
    pending.losses_.push_back(step_.read_scalar("loss"));
  }
  if (update_) {
    update_->set_input("lr", &rate, sizeof rate);
    update_->run();
  }
  Program& last = update_ ? *update_ : step_;
  if (scales_loss()) {
    pending.loss_scale_ = last.read_scalar("loss_scale");
    pending.skipped_ = last.read_scalar("skipped");
  }
  pending.grad_norm_ = last.read_scalar("grad_norm");
  return pending;
}

double Session::evaluate(const Batch& batch) {
  if (!eval_) eval_ = std::make_unique<LossProgram>(config(), platform_, backend_, store_, arena_, arena_bytes_);
  return eval_->run(batch);
}

int64_t Session::tokens_per_step() const { return config().train.batch * config().model.context * micro_batches(); }

double Session::flops_per_step() const {
  double flops = 0;
  for (const Launch& launch : compiled_.step.plan.launches) flops += launch.cost.flops * double(micro_batches());
  if (compiled_.update)
    for (const Launch& launch : compiled_.update->plan.launches) flops += launch.cost.flops;
  return flops;
}

int64_t Session::held_bytes() const {
  int64_t bytes = store_.bytes() + arena_bytes_ + step_.plan().input_bytes;
  if (update_) bytes += update_->plan().input_bytes;
  if (eval_) bytes += eval_->held_bytes();
  return bytes;
}

}  // namespace tokamak
