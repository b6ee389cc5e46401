#include "compile/resolved_run.h"
#include "autodiff/rate_groups.h"
#include "model/model.h"

#include "base/error.h"
#include "config/validate.h"
#include "graph/target.h"
#include "ops/parameter_kind.h"

#include <algorithm>
#include <bit>
#include <set>

#include <fmt/ranges.h>

namespace tokamak {
namespace {

// A gain below this is within the noise of the measured rates.
constexpr double kWorthwhileGain = 1.1;

Precision fastest(const Target& target) {
  bool has_tf32 = target.tf32_flops > kWorthwhileGain * target.f32_flops;
  double f32 = has_tf32 ? target.tf32_flops : target.f32_flops;
  if (target.bf16_flops > kWorthwhileGain * f32) return Precision::kBf16;
  return has_tf32 ? Precision::kTf32 : Precision::kFp32;
}

int64_t asked_micro_batches(const RunConfig& config) {
  int64_t micro = config.train.batch * config.model.context, total = config.step_tokens();
  if (total % micro != 0)
    user_error(
        "[train] expected train.total_batch to be a multiple of train.batch x model.context = {} tokens, got {}; "
        "the nearest below is {}",
        micro, total, std::max(micro, total / micro * micro));
  return total / micro;
}

// As many as are asked for. Where that is left open, each run of each data rank is one, if their number is a power of
// two: then results do not depend on how many ranks there are, and no rank has more than it would have anyway.
int64_t count_slots(const ResolvedRun& run) {
  int64_t slots = run.asked.mesh.slots, ranks = run.data_ranks(), all = ranks * run.micro_batches;
  if (slots != 0) return slots;
  bool can_have = (ranks > 1 || run.stages() > 1) && std::has_single_bit(uint64_t(all)) && run.batch % ranks == 0 &&
                  slots_fit_ramp(run.asked, all, ranks);
  return can_have ? all : 1;
}

// Slots, and the micro-batch that follows from them.
void resolve_slots(ResolvedRun& run) {
  RunConfig said = run.asked;
  said.mesh.slots = count_slots(run);
  if (said.mesh.slots == 1) return;
  validate_slots(said, run.data_ranks());
  run.slots = {.count = said.mesh.slots,
               .ranks = {kDataAxis, run.data_ranks()},
               .sums_over_ranks_first = !adds_gradients_once(run.asked.mesh.zero),
               .other_ranks = run.mesh.size(kContextAxis) * run.mesh.size(kTensorAxis)};
  int64_t sequences = run.batch * run.micro_batches;
  run.micro_batches = run.slots.runs();
  run.batch = sequences / run.micro_batches;
}

// The whole step becomes one of a phase: micro-batches stay as they are, and are fewer.
void take_phase(ResolvedRun& run, const RampPhase& phase) {
  run.phase = phase;
  run.whole_slots = run.slots.count;
  if (phase.step_tokens == run.asked.step_tokens()) return;
  run.micro_batches = phase.step_tokens / (run.batch * run.asked.model.context);
  if (run.has_slots()) run.slots.count = ramp_slots(run.asked, phase, run.whole_slots);
}

std::vector<std::string> parameter_names(const ModelConfig& model) {
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : model_parameters(model)) names.push_back(parameter.name);
  return names;
}

}  // namespace

WorkShares work_shares(const Mesh& mesh, int64_t zero, int64_t least_parts) {
  WorkShares shares{.least_parts = least_parts};
  for (const char* axis : {kDataAxis, kContextAxis, kTensorAxis}) {
    bool is_cut = zero >= 1 || axis == kTensorAxis;
    if (mesh.size(axis) == 1 || !is_cut) continue;
    shares.axes += (shares.axes.empty() ? "" : " ") + std::string(axis);
    shares.ranks *= mesh.size(axis);
  }
  return shares;
}

Optimizer ResolvedRun::optimizer() const {
  Optimizer optimizer(asked.optimizer);
  optimizer.set_shares(work_shares(mesh, asked.mesh.zero, has_slots() ? slots.count * slots.other_ranks : 0));
  return optimizer;
}

std::optional<LossScaling> ResolvedRun::loss_scaling() const {
  if (compile.precision != Precision::kFp16) return {};
  return LossScaling{.growth_interval = double(compile.loss_scale_growth_interval)};
}

RunConfig ResolvedRun::settled() const {
  RunConfig config = asked;
  config.compile = compile;
  config.mesh.slots = whole_slots;
  config.train.batch = batch;
  if (asked.step_tokens() > batch * asked.model.context) config.train.total_batch = asked.step_tokens();
  return config;
}

CompileConfig resolve(const CompileConfig& asked, const Target& target) {
  CompileConfig compile = asked;
  Precision& precision = compile.precision;
  if (precision == Precision::kAuto) precision = fastest(target);
  if (precision == Precision::kTf32 && target.tf32_flops <= 0) precision = Precision::kFp32;
  if (precision == Precision::kFp8 && target.fp8_flops <= 0)
    user_error(
        "[compile] compile.precision=fp8 expected a GPU with FP8 that this program has kernels for (H100, H200), got "
        "{}; "
        "use --compile.precision=bf16",
        target.name);
  compile.streams = std::min<int64_t>(asked.streams, target.streams);
  return compile;
}

void check_groups(const RunConfig& config) {
  if (!config.optimizer.groups.empty()) check_rate_groups(config.optimizer, parameter_names(config.model));
}

std::vector<std::string> describe_groups(const RunConfig& config) {
  if (config.optimizer.groups.empty()) return {};
  return describe_rate_groups(config.optimizer, parameter_names(config.model));
}

// A name that is none would leave all products in eight bits without a word.
void check_excepted(const RunConfig& asked) {
  if (asked.compile.fp8_except.empty()) return;
  std::set<std::string> kinds;
  for (const std::string& name : parameter_names(asked.model)) kinds.insert(kind_of(name));
  for (const std::string& kind : asked.compile.fp8_except)
    if (!kinds.contains(kind))
      user_error("[compile.fp8_except] expected kinds of this model's weights, got '{}'; there are {}", kind,
                 fmt::join(kinds, ", "));
}

// What is kept of the columns of a matrix does not lie as they do where zeros stand among them.
void check_padding(const RunConfig& asked) {
  const ModelConfig& model = asked.model;
  if (divides_model(model, asked.mesh.tensor) || Optimizer(asked.optimizer).keeps_shapes()) return;
  user_error(
      "[mesh.tensor] expected ranks that divide the {} heads (of keys) and the {} hidden units with optimizer.name={}, "
      "got {}; take fewer ranks, or adamw",
      model.num_kv_heads(), model.mlp_width(), asked.optimizer.name, asked.mesh.tensor);
}

ResolvedRun resolve(const RunConfig& asked, const Target& target, int64_t steps_done) {
  check_groups(asked);
  check_padding(asked);
  check_excepted(asked);
  ResolvedRun run;
  run.asked = asked;
  run.mesh = step_mesh(asked.mesh);
  run.batch = asked.train.batch;
  run.micro_batches = asked_micro_batches(asked);
  run.compile = resolve(asked.compile, target);
  resolve_slots(run);
  take_phase(run, ramp_phase(asked, steps_done));
  return run;
}

void require_one_rank(const ResolvedRun& run) {
  if (run.mesh.num_ranks() > 1)
    user_error("[mesh] expected one rank here, got {}; `tokamak train` trains on a mesh and `tokamak explain` plans it",
               to_string(run.mesh));
}

}  // namespace tokamak
