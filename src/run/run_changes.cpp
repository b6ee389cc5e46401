#include "run/run_changes.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "config/visit.h"
#include "run/learning_rate.h"

namespace tokamak {
namespace {

// Where and how the same work is done and told; the data is compared by its content.
constexpr std::string_view kNoChange[] = {"device",
                                          "threads",
                                          "model.preset",
                                          "model.from",
                                          "data.path",
                                          "data.val_path",
                                          "data.tokenizer",
                                          "data.workers",
                                          "train.out",
                                          "train.log_every",
                                          "train.resume",
                                          "train.background_saves",
                                          "train.archive",
                                          "train.tasks",
                                          "train.tasks_every",
                                          "train.tasks_limit",
                                          "train.tasks_cut_contexts",
                                          "train.tensorboard",
                                          "mesh.hang_seconds",
                                          "mesh.interface"};

// What a run cannot go on without.
struct Kept {
  std::string_view key, why;
};
constexpr std::string_view kShapes = "its parameters have that shape";
constexpr std::string_view kFunction = "another one makes another function of the same parameters";
constexpr Kept kKept[] = {{"model.family", kFunction},
                          {"model.layers", kShapes},
                          {"model.heads", kFunction},
                          {"model.width", kShapes},
                          {"model.context", kShapes},
                          {"model.vocab", kShapes},
                          {"model.bias", kShapes},
                          {"model.tie_weights", kShapes},
                          {"model.kv_heads", kShapes},
                          {"model.head_width", kShapes},
                          {"model.hidden", kShapes},
                          {"model.window", kFunction},
                          {"model.qkv_bias", kShapes},
                          {"model.qk_norm", kShapes},
                          {"model.norm_eps", kFunction},
                          {"model.rope_theta", kFunction},
                          {"model.rope_scaling", kFunction},
                          {"model.rope_factor", kFunction},
                          {"model.rope_low_freq", kFunction},
                          {"model.rope_high_freq", kFunction},
                          {"model.rope_original_context", kFunction},
                          {"optimizer.name", "its states are of that one"},
                          {"train.seed", "data order and dropout follow from it"}};

bool may_change_results(std::string_view key) {
  return std::find(std::begin(kNoChange), std::end(kNoChange), key) == std::end(kNoChange);
}

// With slots, how a step's sequences are shared out among runs changes no bit, and train.batch only follows from that:
// told is what a step has.
void tell_as_one_batch(RunConfig& config) {
  config.train.batch = config.step_tokens() / config.model.context;
  config.train.total_batch = 0;
}

// Makes equal what changes no bit.
void forget_shares(RunConfig& was, RunConfig& is) {
  if (std::max(was.mesh.slots, is.mesh.slots) <= 1) return;
  tell_as_one_batch(was);
  tell_as_one_batch(is);
  if (was.mesh.slots != is.mesh.slots) return;
  was.mesh.data = is.mesh.data;
  was.mesh.zero = is.mesh.zero;
  was.mesh.mailbox_mib = is.mesh.mailbox_mib;
  was.mesh.pipe = is.mesh.pipe;
  was.mesh.schedule = is.mesh.schedule;
  was.mesh.interleave = is.mesh.interleave;
  was.mesh.chunk_layers = is.mesh.chunk_layers;
}

std::string describe_rate(const RunConfig& was, const RunConfig& is, int64_t step) {
  double before = learning_rate(step, was.optimizer, was.train.steps);
  double after = learning_rate(step, is.optimizer, is.train.steps);
  if (std::fabs(after - before) <= 1e-9 * std::fabs(before)) return "";
  return fmt::format("; the next step's learning rate is {:.2e}, where it would have been {:.2e}", after, before);
}

// What a longer run does to the schedule, and how it would not.
std::string describe_schedule(const RunConfig& was, const RunConfig& is) {
  int64_t before = schedule_steps(was.optimizer, was.train.steps), now = schedule_steps(is.optimizer, is.train.steps);
  if (before == now || !has_end(is.optimizer)) return "";
  return fmt::format(
      "; the schedule ({}) is now that of a run of {} steps: --optimizer.schedule_steps={} keeps the old one",
      is.optimizer.schedule, now, before);
}

// A mean of the weights goes on, with any decay, or there is none.
void require_same_average(const OptimizerConfig& was, const OptimizerConfig& is, const std::string& out) {
  if ((was.ema > 0) == (is.ema > 0)) return;
  user_error(
      "[train] expected optimizer.ema {} 0, as the run in {} began {} a mean of its weights, got {}; use that, or "
      "another --train.out for a new run",
      was.ema > 0 ? ">" : "=", out, was.ema > 0 ? "with" : "without", is.ema);
}

}  // namespace

std::string describe_changes(const RunConfig& was, const RunConfig& is, int64_t step) {
  RunConfig old = was, now = is;
  forget_shares(old, now);
  std::vector<Field> old_fields = fields_of(old), now_fields = fields_of(now);
  std::string list;
  for (size_t i = 0; i < now_fields.size(); ++i) {
    std::string before = format_value(get(old_fields[i])), after = format_value(get(now_fields[i]));
    if (before != after && may_change_results(now_fields[i].key))
      list += fmt::format("{}{} {} -> {}", list.empty() ? "" : ", ", now_fields[i].key, before, after);
  }
  if (list.empty()) return "";
  return fmt::format("changed since step {}: {}{}{}", step, list, describe_rate(was, is, step),
                     describe_schedule(was, is));
}

void require_same_run(const RunConfig& was, const RunConfig& is) {
  require_same_average(was.optimizer, is.optimizer, is.train.out);
  RunConfig old = was, now = is;
  std::vector<Field> old_fields = fields_of(old), now_fields = fields_of(now);
  for (size_t i = 0; i < now_fields.size(); ++i) {
    auto kept = std::find_if(std::begin(kKept), std::end(kKept),
                             [&](const Kept& setting) { return setting.key == now_fields[i].key; });
    std::string before = format_value(get(old_fields[i])), after = format_value(get(now_fields[i]));
    if (kept != std::end(kKept) && before != after)
      user_error(
          "[train] expected {} = {}, with which the run in {} began ({}), got {}; use that, or another --train.out for "
          "a new run",
          kept->key, before, is.train.out, kept->why, after);
  }
}

}  // namespace tokamak
