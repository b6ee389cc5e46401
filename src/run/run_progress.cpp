#include "run/run_progress.h"

#include "checkpoint/run_folder.h"
#include "config/config.h"
#include "config/json.h"
#include "run/run_changes.h"

#include <algorithm>

namespace tokamak {

KeepRule keep_rule(const TrainConfig& train) { return {train.keep_checkpoints, train.keep_every}; }

CheckpointState describe_progress(const RunProgress& progress, const ResolvedRun& run, const RunData& data, bool writes,
                                  const CheckpointMarks& marks) {
  data.verify_used();
  CheckpointState state{.step = progress.step,
                        .tokens = progress.tokens,
                        .seed = run.asked.train.seed,
                        .config_json = to_json(as_kept(run.settled())),
                        .good = marks.good,
                        .best = marks.best,
                        .is_extra = marks.is_extra};
  data.describe(state, progress.samples);
  if (writes) state.for_others = data.files_for_others();
  return state;
}

std::filesystem::path save_progress(const RunProgress& progress, const ResolvedRun& run, const TensorStore& store,
                                    const RunData& data, const CheckpointMarks& marks) {
  return save_checkpoint(run.asked.train.out, describe_progress(progress, run, data, store.leads(), marks), store,
                         keep_rule(run.asked.train));
}

RunProgress load_progress(const FoundCheckpoint& found, Session& session) {
  load_parameters(found, session.store());
  load_optimizer(found, session.store());
  return {found.state.step, found.state.tokens, found.state.data_position};
}

RunConfig config_of(const FoundCheckpoint& found) {
  return run_config_from_json(found.state.config_json, found.path.string());
}

void add_missing(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const std::string& one : more)
    if (std::ranges::find(list, one) == list.end()) list.push_back(one);
}

RunConfig going_on(RunConfig config, const FoundCheckpoint& found) {
  RunConfig began = config_of(found);
  require_same_run(began, config);
  if (config.compile.precision == Precision::kAuto) config.compile.precision = began.compile.precision;
  if (config.mesh.slots == 0) config.mesh.slots = began.mesh.slots;
  add_missing(config.compile.fp8_except, began.compile.fp8_except);  // what a shadow has found
  return config;
}

}  // namespace tokamak
