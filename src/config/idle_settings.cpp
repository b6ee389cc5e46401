#include "config/idle_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "config/config.h"
#include "config/visit.h"

namespace tokamak {
namespace {

struct Situation {
  const RunConfig& run;
  const GivenOptions& given;
  const RunPlace& place;

  int64_t steps() const { return run.train.steps; }
  const OptimizerConfig& optimizer() const { return run.optimizer; }
  const MeshConfig& mesh() const { return run.mesh; }
  int64_t data_ranks() const { return std::max<int64_t>(mesh().data, 1) * mesh().context; }
  int64_t ranks() const { return data_ranks() * mesh().pipe * mesh().tensor; }
  bool only_warms_up() const { return optimizer().warmup_steps >= steps(); }
  bool samples() const { return run.train.sample_every > 0 && run.train.sample_every <= steps(); }
};

bool has_no_rope_scaling(const Situation& s) { return s.run.model.rope_scaling == "none"; }
bool is_not_llama3(const Situation& s) { return s.run.model.rope_scaling != "llama3"; }
bool has_no_softcap(const Situation& s) { return s.run.model.softcap == 0; }

std::string ends_before(const Situation& s) { return fmt::format("the run ends after {} steps", s.steps()); }
std::string ends_with_it(const Situation& s) { return ends_before(s) + ", which it does with one"; }
std::string warms_up(const Situation& s) {
  return fmt::format("the warm-up of {} steps (optimizer.warmup_steps) is not shorter than the run of {}",
                     s.optimizer().warmup_steps, s.steps());
}
std::string other_rule(const Situation& s) {
  return fmt::format("the rule of the update is {} (optimizer.name)", s.optimizer().name);
}
std::string learns_nothing(const Situation&) { return "optimizer.lr is 0: no parameter changes"; }
std::string never_validates(const Situation&) { return "nothing is validated (train.eval_every = 0)"; }
std::string never_asks(const Situation&) { return "there are no tasks (train.tasks)"; }
std::string never_samples(const Situation&) { return "no sample is written in this run (train.sample_every)"; }
std::string is_prepared(const Situation&) { return "all data was made by `tokamak prepare`, which says it"; }
std::string other_precision(const Situation& s) {
  return fmt::format("the precision is {} (compile.precision)", precision_name(s.run.compile.precision));
}
std::string runs_on_cpu(const Situation&) { return "it is for GPUs, and this runs on the CPU"; }
std::string is_alone(const Situation&) { return "there is only one rank"; }
std::string has_no_pipe(const Situation&) { return "there is no pipeline (mesh.pipe = 1)"; }
std::string has_no_tensor(const Situation&) { return "no matrix is divided (mesh.tensor = 1)"; }

std::string other_family(const Situation& s) {
  return fmt::format("the family is {} (model.family)", s.run.model.family);
}
std::string other_scaling(const Situation& s) {
  return fmt::format("model.rope_scaling is {}", s.run.model.rope_scaling);
}
std::string no_softcap(const Situation&) { return "logits are not capped (model.softcap = 0)"; }

std::string other_schedule(const Situation& s) {
  return fmt::format("the schedule is {} (optimizer.schedule)", s.optimizer().schedule);
}
bool is_constant(const Situation& s) { return s.optimizer().schedule == "constant"; }
bool has_no_end(const Situation& s) { return is_constant(s) || s.optimizer().schedule == "inverse_sqrt"; }
bool is_not_wsd(const Situation& s) { return s.optimizer().schedule != "wsd"; }
bool is_frozen(const Situation& s) { return s.optimizer().lr == 0; }
bool only_warms_up(const Situation& s) { return s.only_warms_up(); }
bool is_not_fp16(const Situation& s) { return s.run.compile.precision != Precision::kFp16; }
bool is_not_fp8(const Situation& s) { return s.run.compile.precision != Precision::kFp8; }
bool no_validation(const Situation& s) { return s.run.train.eval_every == 0; }
bool no_tasks(const Situation& s) { return s.run.train.tasks.empty(); }
// Steps that are saved on the way, and the last.
bool keeps_no_multiple(const Situation& s) {
  const TrainConfig& train = s.run.train;
  int64_t both = train.checkpoint_every > 0 ? std::lcm(train.checkpoint_every, train.keep_every) : s.steps() + 1;
  return train.keep_every > 0 && both > s.steps() && s.steps() % train.keep_every != 0;
}
bool reads_prepared(const Situation& s) { return s.place.all_prepared; }

enum class Of { kStep, kRun };  // what the setting is of: every step, or the run as a whole

struct IdleRule {
  const char* key;
  Of of;
  bool (*is_idle)(const Situation&);
  std::string (*why)(const Situation&);
};

/// The first that holds for a key is told.
constexpr IdleRule kRules[] = {
    {"model.rope_factor", Of::kStep, has_no_rope_scaling, other_scaling},
    {"model.rope_low_freq", Of::kStep, is_not_llama3, other_scaling},
    {"model.rope_high_freq", Of::kStep, is_not_llama3, other_scaling},
    {"model.rope_original_context", Of::kStep, is_not_llama3, other_scaling},
    {"model.softcap_shift", Of::kStep, has_no_softcap, no_softcap},
    {"model.softcap_width", Of::kStep, has_no_softcap, no_softcap},
    {"model.window_pattern", Of::kStep, [](const Situation& s) { return s.run.model.window == 0; },
     [](const Situation&) -> std::string { return "there is no window (model.window = 0)"; }},

    {"data.val_path", Of::kRun, no_validation, never_validates},
    {"data.format", Of::kRun, reads_prepared, is_prepared},
    {"data.token_type", Of::kRun, reads_prepared, is_prepared},
    {"data.field", Of::kRun, reads_prepared, is_prepared},
    {"data.end_of_text", Of::kRun, [](const Situation& s) { return !s.run.data.mask_documents && !s.samples(); },
     [](const Situation&) -> std::string {
       return "only data.mask_documents and samples ask for it, and there are neither";
     }},

    {"optimizer.min_lr_ratio", Of::kRun, is_frozen, learns_nothing},
    {"optimizer.min_lr_ratio", Of::kRun, only_warms_up, warms_up},
    {"optimizer.min_lr_ratio", Of::kRun, is_constant, other_schedule},
    {"optimizer.schedule", Of::kRun, only_warms_up, warms_up},
    {"optimizer.schedule_steps", Of::kRun, has_no_end, other_schedule},
    {"optimizer.wsd_decay_share", Of::kRun, is_not_wsd, other_schedule},
    {"optimizer.wsd_decay", Of::kRun, is_not_wsd, other_schedule},
    {"optimizer.warmup_steps", Of::kRun, is_frozen, learns_nothing},
    {"optimizer.beta1", Of::kStep, is_frozen, learns_nothing},
    {"optimizer.beta2", Of::kStep, is_frozen, learns_nothing},
    {"optimizer.eps", Of::kStep, is_frozen, learns_nothing},
    {"optimizer.momentum", Of::kStep, is_frozen, learns_nothing},
    {"optimizer.weight_decay", Of::kStep, is_frozen, learns_nothing},
    {"optimizer.clip", Of::kStep, is_frozen, learns_nothing},

    {"train.eval_every", Of::kRun, [](const Situation& s) { return s.run.train.eval_every > s.steps(); }, ends_with_it},
    {"train.eval_batches", Of::kRun, no_validation, never_validates},
    {"train.tasks_every", Of::kRun, no_tasks, never_asks},
    {"train.tasks_every", Of::kRun, [](const Situation& s) { return s.run.train.tasks_every > s.steps(); },
     ends_with_it},
    {"train.tasks_limit", Of::kRun, no_tasks, never_asks},
    {"train.tasks_cut_contexts", Of::kRun, no_tasks, never_asks},
    {"train.min_improvement", Of::kRun, [](const Situation& s) { return s.run.train.patience == 0; },
     [](const Situation&) -> std::string { return "training does not end early (train.patience = 0)"; }},
    {"train.sample_every", Of::kRun, [](const Situation& s) { return s.run.train.sample_every > s.steps(); },
     ends_before},
    {"train.sample_tokens", Of::kRun, [](const Situation& s) { return !s.samples(); }, never_samples},
    {"train.checkpoint_every", Of::kRun, [](const Situation& s) { return s.run.train.checkpoint_every > s.steps(); },
     ends_with_it},
    {"train.keep_every", Of::kRun, keeps_no_multiple,
     [](const Situation&) -> std::string { return "no step that is saved (train.checkpoint_every) is a multiple"; }},
    {"train.digest_every", Of::kRun, [](const Situation& s) { return s.run.train.digest_every > s.steps(); },
     ends_before},
    {"train.verify_every", Of::kRun, [](const Situation& s) { return s.run.train.verify_every > s.steps(); },
     ends_before},
    {"train.shadow_every", Of::kRun, is_not_fp8, other_precision},
    {"train.shadow_every", Of::kRun, [](const Situation& s) { return s.run.train.shadow_every > s.steps(); },
     ends_before},
    {"train.shadow_bound", Of::kRun, [](const Situation& s) { return s.run.train.shadow_every == 0; },
     [](const Situation&) -> std::string { return "gradients are not compared with bf16's (train.shadow_every = 0)"; }},
    {"train.log_every", Of::kRun, [](const Situation& s) { return s.run.train.log_every > s.steps(); }, ends_before},

    {"compile.loss_scale", Of::kStep, is_not_fp16, other_precision},
    {"compile.loss_scale_growth_interval", Of::kStep, is_not_fp16, other_precision},
    {"compile.loss_scale_growth_interval", Of::kRun,
     [](const Situation& s) { return s.run.compile.loss_scale_growth_interval > s.steps(); }, ends_before},
    {"compile.fp8_attention", Of::kStep, is_not_fp8, other_precision},
    {"compile.fp8_except", Of::kStep, is_not_fp8, other_precision},
    {"compile.low_residual", Of::kStep, [](const Situation& s) { return !is_low(s.run.compile.precision); },
     other_precision},
    {"compile.cuda_graph", Of::kStep, [](const Situation& s) { return !s.place.is_gpu; }, runs_on_cpu},
    {"compile.chain", Of::kStep, [](const Situation& s) { return !s.place.is_gpu; }, runs_on_cpu},
    {"compile.streams", Of::kStep, [](const Situation& s) { return !s.place.is_gpu && s.run.compile.streams > 1; },
     runs_on_cpu},
    {"compile.deterministic", Of::kStep,
     [](const Situation& s) { return !s.place.is_gpu && !s.run.compile.deterministic; }, runs_on_cpu},

    {"mesh.sequence", Of::kStep, [](const Situation& s) { return s.mesh().tensor == 1; }, has_no_tensor},
    {"mesh.async_tensor", Of::kStep, [](const Situation& s) { return s.mesh().tensor == 1; }, has_no_tensor},
    {"mesh.async_tensor", Of::kStep, [](const Situation& s) { return !s.place.is_gpu; }, runs_on_cpu},
    {"mesh.zero", Of::kStep, [](const Situation& s) { return s.mesh().zero > 0 && s.ranks() == 1; }, is_alone},
    {"mesh.zero", Of::kStep, [](const Situation& s) { return s.mesh().zero > 0 && s.data_ranks() == 1; },
     [](const Situation&) -> std::string {
       return "neither batch nor sequences are divided (mesh.data and mesh.context are 1)";
     }},
    {"mesh.reduce_gradients", Of::kStep,
     [](const Situation& s) { return !adds_gradients_once(s.mesh().zero) || s.mesh().data == 1; },
     [](const Situation&) -> std::string {
       return "data ranks, if there are any, add gradients up otherwise (it is for mesh.zero below 2)";
     }},
    {"mesh.interface", Of::kRun, [](const Situation& s) { return s.ranks() == 1; }, is_alone},
    {"mesh.bucket_mib", Of::kStep, [](const Situation& s) { return s.ranks() == 1; }, is_alone},
    {"mesh.mailbox_mib", Of::kStep, [](const Situation& s) { return s.ranks() == 1; }, is_alone},
    {"mesh.mailbox_mib", Of::kStep, [](const Situation& s) { return !s.place.is_gpu; }, runs_on_cpu},
    {"mesh.schedule", Of::kStep, [](const Situation& s) { return s.mesh().pipe == 1; }, has_no_pipe},
};

class Lines {
 public:
  Lines(const Situation& situation) : situation_(situation), copy_(situation.run), fields_(fields_of(copy_)) {}

  // Of a key only the first reason.
  void tell(const std::string& key, std::string (*why)(const Situation&)) {
    if (std::ranges::find(told_, key) != told_.end()) return;
    told_.push_back(key);
    const Field* field = find_field(fields_, key);
    TOKAMAK_CHECK(field, "a rule for {}, which is no key", key);
    lines_.push_back(fmt::format("{} = {} has no effect: {}", key, format_value(get(*field)), why(situation_)));
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  const Situation& situation_;
  RunConfig copy_;
  std::vector<Field> fields_;
  std::vector<std::string> lines_, told_;
};

}  // namespace

std::vector<std::string> idle_settings(const RunConfig& run, const GivenOptions& given, const RunPlace& place,
                                       const UnreadOptions& unread) {
  const Situation situation{run, given, place};
  Lines lines(situation);
  for (const std::string& key : unread.by_family)
    if (given.chose(key)) lines.tell(key, other_family);
  for (const std::string& key : unread.by_optimizer)
    if (given.chose(key)) lines.tell(key, other_rule);
  for (const IdleRule& rule : kRules) {
    if (!given.chose(rule.key) || (rule.of == Of::kRun && !place.trains)) continue;
    if (rule.is_idle(situation)) lines.tell(rule.key, rule.why);
  }
  return lines.take();
}

}  // namespace tokamak
