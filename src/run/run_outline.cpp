#include "run/run_outline.h"

#include "checkpoint/checkpoint.h"
#include "compile/compiled_run.h"
#include "compile/memory_advice.h"
#include "config/cluster.h"
#include "config/train_ramp.h"
#include "data/data_tokenizer.h"
#include "model/model.h"
#include "model/utilization.h"
#include "run/run_progress.h"
#include "run/schedule_chart.h"

#include <fmt/format.h>

namespace tokamak {

RunOutline make_outline(const ResolvedRun& run, const Target& target, const RunData& data, int64_t done,
                        double step_seconds, int64_t memory_bytes) {
  const TrainConfig& train = run.asked.train;
  int64_t ranks = run.mesh.num_ranks();
  RunOutline outline{.parameters = count_parameters(run.asked.model),
                     .precision = std::string(precision_name(run.compile.precision)),
                     .memory_bytes = memory_bytes,
                     .done = done,
                     .steps = train.steps,
                     .step_tokens = run.asked.step_tokens(),
                     .tokens = ramp_tokens(run.asked, train.steps) - ramp_tokens(run.asked, done),
                     .epoch_tokens = data.epoch_tokens(),
                     .step_seconds = step_seconds,
                     .out = train.out,
                     .checkpoint_every = train.checkpoint_every,
                     .peak = peak_of(target, run.compile.precision).of_ranks(ranks)};
  outline.seconds = outline.tokens / double(run.phase.step_tokens) * step_seconds;
  if (std::optional<DevicePrice> price = find_price(target.name)) {
    outline.dollars_per_hour = price->dollars * double(ranks);
    outline.priced_as = price->cluster;
  }
  return outline;
}

std::string describe_mesh(const ResolvedRun& run) {
  int64_t zero = run.asked.mesh.zero;
  return fmt::format("mesh: {}{}", to_string(run.mesh), zero > 0 ? fmt::format(", ZeRO {}", zero) : "");
}

std::string describe_run(const RunConfig& asked, const Platform& platform) {
  std::optional<FoundCheckpoint> found;
  if (asked.train.resume) found = peek_checkpoint(asked.train.out);
  RunConfig config = with_data_vocab(asked);
  if (found) config = going_on(config, *found);
  int64_t done = found ? found->state.step : 0;
  ResolvedRun run = resolve(config, platform.target, done);
  RunData data(run, found ? &*found : nullptr, false);
  CompiledRun compiled = compile_run(run, platform);
  std::string text;
  if (run.mesh.num_ranks() > 1) text += describe_mesh(run) + "\n";
  for (const std::string& note : data.notes()) text += note + "\n";
  if (std::string note = budget_warning(compiled.fullest().intermediate_bytes(), run.compile.memory_budget_gib);
      !note.empty())
    text += note + "\n";
  text += format_outline(
      make_outline(run, platform.target, data, done, compiled.seconds, compiled.fullest().total_bytes()));
  return text + "\n\n" + draw_schedule(run.asked.optimizer, run.asked.train.steps);
}

}  // namespace tokamak
