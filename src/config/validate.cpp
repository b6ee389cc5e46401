#include "config/validate.h"
#include "config/chunk_layers.h"

#include "base/divide.h"
#include "base/error.h"
#include "config/config.h"
#include "config/train_ramp.h"
#include "config/visit.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace tokamak {

namespace {

void check_heads(const ModelConfig& model) {
  if (model.heads % model.num_kv_heads() != 0)
    user_error("[model.kv_heads] expected a divisor of model.heads = {}, got {}", model.heads, model.kv_heads);
  if (model.has_free_sizes() && model.head_width > 0) return;
  if (model.width % model.heads == 0) return;
  user_error("[model.heads] expected a divisor of model.width = {}, got {}; change one of them", model.width,
             model.heads);
}

void check_window_pattern(const std::string& pattern) {
  if (!pattern.empty() && pattern.find_first_not_of("SL") == std::string::npos) return;
  user_error("[model.window_pattern] expected letters S (model.window) and L (all), as SSSL, got '{}'", pattern);
}

void check_total_batch(const RunConfig& config) {
  constexpr int64_t kMostMicroBatches = 1 << 20;
  int64_t micro_batch = config.train.batch * config.model.context;
  if (config.train.total_batch / micro_batch > kMostMicroBatches)
    user_error("[train.total_batch] expected at most {} micro-batches of {} tokens, got {} tokens; raise train.batch",
               kMostMicroBatches, micro_batch, config.train.total_batch);
  if (config.train.total_batch % micro_batch == 0) return;
  user_error(
      "[train.total_batch] expected a multiple of train.batch x model.context = {} x {} = {} tokens, got {}; "
      "use {} or change train.batch",
      config.train.batch, config.model.context, micro_batch, config.train.total_batch,
      (config.train.total_batch / micro_batch + 1) * micro_batch);
}

// Divisors of n, as text.
std::string list_divisors(int64_t n) {
  std::string list;
  for (int64_t d = 1; d <= n && list.size() < 60; ++d)
    if (n % d == 0) list += fmt::format("{}{}", list.empty() ? "" : ", ", d);
  return list;
}

void check_divides(const char* axis, int64_t ranks, const char* what, int64_t size) {
  if (ranks == 0 || size % ranks == 0) return;
  user_error("[mesh.{}] expected a divisor of {} = {}, got {}; {} would fit", axis, what, size, ranks,
             list_divisors(size));
}

// A rank has an early and a late piece of each sequence.
void check_context(int64_t ranks, int64_t context) {
  if (ranks == 1 || context % (2 * ranks) == 0) return;
  user_error("[mesh.context] expected a divisor of half of model.context = {}, got {}; {} would fit", context, ranks,
             list_divisors(context % 2 == 0 ? context / 2 : 1));
}

bool is_interleaved(const MeshConfig& mesh) { return mesh.pipe > 1 && mesh.schedule == "interleaved"; }

void check_pipe(const RunConfig& config) {
  const MeshConfig& mesh = config.mesh;
  int64_t layers = config.model.layers;
  bool interleaved = is_interleaved(mesh);
  if (!interleaved && mesh.interleave > 1)
    user_error("[mesh.interleave] expected 1 without mesh.schedule=interleaved and mesh.pipe > 1, got {}",
               mesh.interleave);
  if (interleaved && mesh.interleave == 1)
    user_error("[mesh.interleave] expected 2 or more with mesh.schedule=interleaved, got 1; use 2, or 1f1b");
  if (mesh.pipe > 1 && mesh.pipe * mesh.interleave > most_chunks(layers)) {
    int64_t stages = most_chunks(layers) / mesh.interleave;
    user_error("[mesh.pipe] expected mesh.pipe x mesh.interleave to be at most model.layers + 2 = {}, got {} x {}; {}",
               most_chunks(layers), mesh.pipe, mesh.interleave,
               stages >= 2           ? fmt::format("up to {} stages would fit", stages)
               : mesh.interleave > 1 ? "use fewer chunks a stage, or another mesh.schedule"
                                     : "use mesh.pipe=1");
  }
  chunk_layers(mesh, layers);
  int64_t tokens = config.train.batch * config.model.context;
  int64_t micro_batches = std::max<int64_t>(config.train.total_batch / tokens, 1);
  if (interleaved && mesh.slots <= 1 && micro_batches % mesh.pipe != 0)  // with slots they follow from these
    user_error(
        "[train.total_batch] expected a multiple of mesh.pipe = {} micro-batches with mesh.schedule=interleaved, got "
        "{}; {} tokens would fit",
        mesh.pipe, micro_batches, (micro_batches / mesh.pipe + 1) * mesh.pipe * tokens);
}

// What a number of slots is a multiple of.
int64_t slot_divisor(const MeshConfig& mesh, int64_t data_ranks) {
  return data_ranks * (is_interleaved(mesh) ? mesh.pipe : 1);
}

// Powers of two that `divisor` divides and that divide n.
std::string list_slots(int64_t divisor, int64_t n) {
  std::string list;
  for (int64_t slots = 2; slots <= n && n % slots == 0; slots *= 2)
    if (slots % divisor == 0) list += fmt::format("{}, ", slots);
  return list + "1 (sums in any order)";
}

void check_tensor(const ModelConfig& model, int64_t ranks) {
  if (divides_padded_model(model, ranks)) return;
  std::string fitting;
  for (int64_t fits = 1; fits <= 2 * model.heads && fitting.size() < 60; ++fits)
    if (divides_padded_model(model, fits)) fitting += fmt::format("{}{}", fitting.empty() ? "" : ", ", fits);
  bool is_shared = model.num_kv_heads() != model.heads;
  user_error("[mesh.tensor] expected ranks that divide model.{} = {}, or at most a third more, got {}; {} would fit",
             is_shared ? "kv_heads" : "heads", model.num_kv_heads(), ranks, fitting);
}

void check_mesh(const RunConfig& config) {
  const MeshConfig& mesh = config.mesh;
  check_pipe(config);
  // With slots train.batch follows from them.
  if (mesh.slots <= 1)
    check_divides("data", mesh.data, "train.batch", config.train.batch);
  else
    validate_slots(config, std::max<int64_t>(mesh.data, 1));
  check_context(mesh.context, config.model.context);
  check_tensor(config.model, mesh.tensor);
}

// What is asked of all steps, of the smaller ones of train.ramp.
void check_ramp(const RunConfig& config) {
  std::vector<RampPhase> phases = ramp_phases(config);
  RunConfig part = config;
  part.mesh.slots = 1;
  for (size_t i = 0; i + 1 < phases.size(); ++i) try {
      part.train.total_batch = phases[i].step_tokens;
      check_total_batch(part);
      check_mesh(part);
      check_context(config.mesh.context, phases[i].sequence);
    } catch (const UserError& error) {
      user_error("[train.ramp] '{}': {}", config.train.ramp[i], error.what());
    }
  int64_t ranks = std::max<int64_t>(config.mesh.data, 1);
  if (config.mesh.slots > 1 && !slots_fit_ramp(config, config.mesh.slots, ranks))
    user_error(
        "[train.ramp] expected each phase to have a share of mesh.slots = {} that is a power of two and that {} data "
        "ranks divide; use other total_batch, or --mesh.slots=1",
        config.mesh.slots, ranks);
}

// A clip that f32 has no number for would be 0, with which no update is applied.
void check_clip(const OptimizerConfig& optimizer) {
  constexpr double kLeast = 1e-30;
  if (optimizer.clip == 0 || optimizer.clip >= kLeast) return;
  user_error("[optimizer.clip] expected 0 or a number of at least {}, got {}; 0 turns clipping off", kLeast,
             optimizer.clip);
}

// Bytes of tensors have to be counted in 64 bits: far more of them than there is memory anywhere.
void check_sizes(const RunConfig& config) {
  constexpr double kMostBytes = 0x1p60;
  const ModelConfig& m = config.model;
  auto layers = double(m.layers), width = double(m.width), context = double(m.context), vocab = double(m.vocab);
  double parameters = 12 * layers * width * width + (2 * vocab + context) * width;
  double of_a_token = layers * (64 * width + 8 * double(m.heads) * context) + 8 * vocab;
  double bytes = 16 * parameters + 4 * double(config.train.batch) * context * of_a_token;
  if (bytes < kMostBytes) return;
  user_error(
      "[model] expected a training step of less than {:.1e} bytes, got sizes for up to {:.1e}; lower train.batch, "
      "model.context, model.width or model.layers",
      kMostBytes, bytes);
}

void check_length(const TrainConfig& train) {
  int said = int(train.steps > 0) + int(train.epochs > 0) + int(train.tokens > 0);
  if (said == 1) return;
  user_error(
      "[train.steps] expected the length of the run as one of train.steps, train.epochs and train.tokens, got {}; "
      "give one",
      said == 0 ? "none" : "several");
}

void check_validation(const TrainConfig& train) {
  if (train.eval_every > 0 || (train.patience == 0 && !train.keep_best)) return;
  user_error("[{}] expected validations (train.eval_every), which it goes by, got none; set train.eval_every",
             train.patience > 0 ? "train.patience" : "train.keep_best");
}

void check_recompute(const CompileConfig& compile) {
  if (compile.recompute == kRecompute[0] || compile.memory_budget_gib == 0) return;
  user_error(
      "[compile.recompute] expected either what is computed again or a budget (compile.memory_budget_gib) that decides "
      "it, got {} and {} GiB; leave one out",
      compile.recompute, compile.memory_budget_gib);
}

void check_values(const RunConfig& config) {
  RunConfig copy = config;
  for (const Field& field : fields_of(copy)) check_rule(field, field.key);
  check_clip(config.optimizer);
  check_recompute(config.compile);
  check_length(config.train);
  check_validation(config.train);
}

}  // namespace

bool divides_model(const ModelConfig& model, int64_t ranks) {
  return model.num_kv_heads() % ranks == 0 && model.mlp_width() % ranks == 0;
}

bool divides_padded_model(const ModelConfig& model, int64_t ranks) {
  int64_t heads = model.num_kv_heads();
  return 3 * round_up(heads, ranks) <= 4 * heads;
}

bool slots_fit_ramp(const RunConfig& config, int64_t slots, int64_t data_ranks) {
  std::vector<RampPhase> phases = ramp_phases(config);
  return std::all_of(phases.begin(), phases.end(), [&](const RampPhase& phase) {
    int64_t own = ramp_slots(config, phase, slots);
    return std::has_single_bit(uint64_t(own)) && own % slot_divisor(config.mesh, data_ranks) == 0;
  });
}

void validate_slots(const RunConfig& config, int64_t data_ranks) {
  int64_t slots = config.mesh.slots, sequences = config.step_tokens() / config.model.context;
  int64_t stages = is_interleaved(config.mesh) ? config.mesh.pipe : 1, divisor = slot_divisor(config.mesh, data_ranks);
  if (slots == 1 || (std::has_single_bit(uint64_t(slots)) && slots % divisor == 0 && sequences % slots == 0)) return;
  std::string of_stages = stages > 1 ? fmt::format(" x {} interleaved stages", stages) : "";
  user_error(
      "[mesh.slots] expected a power of two that {} data ranks{} divide, and that divides the {} sequences of a step, "
      "got {}; {} would fit (a run keeps the number that it began with, unless it is given)",
      data_ranks, of_stages, sequences, slots, list_slots(divisor, sequences));
}

void validate(const RunConfig& config) {
  check_values(config);
  check_heads(config.model);
  check_window_pattern(config.model.window_pattern);
  check_total_batch(config);
  check_mesh(config);
  check_ramp(config);
  check_sizes(config);
}

void validate_asked(const RunConfig& config) { config.model.from.empty() ? validate(config) : check_values(config); }

}  // namespace tokamak
