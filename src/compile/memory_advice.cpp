#include "compile/memory_advice.h"

#include "base/bytes.h"
#include "compile/compiled_run.h"
#include "config/config.h"
#include "config/number.h"
#include "plan/memory.h"
#include "plan/units.h"

#include <fmt/core.h>

#include <algorithm>

namespace tokamak {
namespace {

// The tokens of the step stay what they are.
RunConfig with_batch(RunConfig config, int64_t batch) {
  config.train.total_batch = config.step_tokens();
  config.train.batch = batch;
  config.mesh.slots = 0;
  return config;
}

CompiledStep compile_fullest(const RunConfig& config, const Platform& platform) {
  return compile_run(resolve(config, platform.target), platform).fullest();
}

// Intermediate values get what everything else leaves.
RunConfig with_budget(RunConfig config, const Platform& platform, int64_t available_bytes) {
  CompiledStep step = compile_fullest(config, platform);
  int64_t others = step.total_bytes() - step.intermediate_bytes();
  // As it is written in the message.
  config.compile.memory_budget_gib = std::stod(format_budget_gib(double(available_bytes - others) / kGiB));
  return config;
}

std::vector<int64_t> smaller_divisors(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t parts = 2; parts <= n; ++parts)
    if (n % parts == 0) divisors.push_back(n / parts);
  return divisors;
}

class Search {
 public:
  Search(const ResolvedRun& run, const Platform& platform, int64_t available_bytes)
      : config_(run.settled()), platform_(platform), available_(available_bytes) {}

  std::vector<MemoryRemedy> find() {
    std::vector<int64_t> batches = smaller_divisors(config_.train.batch);  // largest first
    auto batch = std::partition_point(batches.begin(), batches.end(),
                                      [&](int64_t b) { return bytes_of(with_batch(config_, b)) > available_; });
    if (batch != batches.end()) add_if_fits(with_batch(config_, *batch));
    add_budget_if_fits(config_);
    if (found_.empty() && !batches.empty()) add_budget_if_fits(with_batch(config_, 1));
    return std::move(found_);
  }

 private:
  int64_t bytes_of(const RunConfig& config) const { return compile_fullest(config, platform_).total_bytes(); }

  void add_if_fits(const RunConfig& config) {
    MemoryRemedy remedy{config, settings_of(config), effect_of(config), bytes_of(config)};
    if (remedy.bytes <= available_) found_.push_back(std::move(remedy));
  }

  // No budget is 0, which would mean no limit.
  void add_budget_if_fits(const RunConfig& config) {
    RunConfig changed = with_budget(config, platform_, available_);
    if (changed.compile.memory_budget_gib > 0) add_if_fits(changed);
  }

  bool splits(const RunConfig& config) const { return config.train.batch != config_.train.batch; }
  bool recomputes(const RunConfig& config) const {
    return config.compile.memory_budget_gib != config_.compile.memory_budget_gib;
  }
  std::string settings_of(const RunConfig& config) const {
    std::string text;
    if (splits(config))
      text = fmt::format("--train.batch={} --train.total_batch={}", config.train.batch, config.train.total_batch);
    if (recomputes(config))
      text += fmt::format("{}--compile.memory_budget_gib={}", text.empty() ? "" : " ",
                          format_budget_gib(config.compile.memory_budget_gib));
    return text;
  }
  std::string effect_of(const RunConfig& config) const {
    std::string text;
    if (splits(config))
      text =
          fmt::format("the same step in {} parts", config.step_tokens() / (config.train.batch * config.model.context));
    if (recomputes(config)) text += fmt::format("{}activations are computed again", text.empty() ? "" : ", ");
    return text;
  }

  RunConfig config_;
  const Platform& platform_;
  int64_t available_;
  std::vector<MemoryRemedy> found_;
};

}  // namespace

std::vector<MemoryRemedy> find_memory_remedies(const ResolvedRun& run, const Platform& platform,
                                               int64_t available_bytes) {
  return Search(run, platform, available_bytes).find();
}

std::string memory_advice(const ResolvedRun& run, const Platform& platform, int64_t available_bytes) {
  std::string text;
  for (const MemoryRemedy& remedy : find_memory_remedies(run, platform, available_bytes))
    text += fmt::format("{}{} ({}: {})", text.empty() ? "it fits with " : ", or with ", remedy.settings, remedy.effect,
                        format_bytes(double(remedy.bytes)));
  if (!text.empty()) return text;
  return "neither a smaller --train.batch with --train.total_batch nor --compile.memory_budget_gib makes it fit: use a "
         "smaller model, shorten --model.context, or divide it over ranks (--mesh.zero, --mesh.tensor, --mesh.pipe)";
}

std::string too_large_note(const CompiledStep& step, const Platform& platform, int64_t available_bytes) {
  if (step.total_bytes() <= available_bytes) return "";
  return fmt::format("does not fit: {} of memory are planned for a rank, it can have {}; {}",
                     format_bytes(double(step.total_bytes())), format_bytes(double(available_bytes)),
                     memory_advice(step.resolved, platform, available_bytes));
}

std::string budget_warning(int64_t intermediate_bytes, double budget_gib) {
  constexpr double kTolerated = 1.02;
  auto bytes = double(intermediate_bytes);
  if (budget_gib <= 0 || bytes <= kTolerated * budget_gib * kGiB) return "";
  return fmt::format(
      "warning: compile.memory_budget_gib = {} cannot be met: it is {}, and the step's intermediate values take {} "
      "with "
      "everything recomputed that can be; lower train.batch or model.context",
      budget_gib, format_bytes(budget_gib * kGiB), format_bytes(bytes));
}

void require_fits(const CompiledStep& step, const Platform& platform, int64_t available_bytes) {
  // What the other programs have beyond the largest one is gone for it.
  const Plan& plan = step.largest().plan;
  int64_t others = step.total_bytes() - plan.total_bytes();
  require_fits(plan, available_bytes - others, [&] { return memory_advice(step.resolved, platform, available_bytes); });
}

}  // namespace tokamak
