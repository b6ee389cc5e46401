#include "run/check_run.h"

#include "autodiff/optimizer_rule.h"
#include "base/error.h"
#include "checkpoint/run_folder.h"
#include "compile/resolved_run.h"
#include "config/config.h"
#include "config/json.h"
#include "data/data_tokenizer.h"
#include "evaluate/task.h"
#include "model/model.h"
#include "passes/pass.h"
#include "run/run_changes.h"
#include "run/run_data.h"
#include "run/train_length.h"

namespace tokamak {
namespace {

void check_names(const RunConfig& config) {
  rule_of(config.optimizer);
  family_of(config.model);
  check_groups(config);
  check_disabled_names(config.compile.disable_passes);
  parse_tasks(config.train.tasks);
}

void check_archive(const TrainConfig& train) {
  if (train.archive.empty()) return;
  check_folder(train.archive);
  if (std::filesystem::weakly_canonical(train.archive) == std::filesystem::weakly_canonical(train.out))
    user_error("[train.archive] expected another folder than train.out, got {} for both; name one on another disk",
               train.archive);
}

}  // namespace

RunConfig checked_run(const RunConfig& asked, AnotherTrains trains) {
  check_names(asked);
  if (asked.train.out.empty()) user_error("[train.out] expected a folder for the run, got nothing; name one");
  check_folder(asked.train.out);
  check_archive(asked.train);
  if (trains == AnotherTrains::kIsRefused) require_unlocked(asked.train.out);
  RunConfig config = with_data_vocab(asked);
  std::optional<FoundCheckpoint> found;
  if (config.train.resume) found = peek_checkpoint(config.train.out);
  if (found) require_same_run(run_config_from_json(found->state.config_json, found->path.string()), config);
  int64_t windows = RunData::check(config, found ? &*found : nullptr);
  return with_steps(asked, windows);
}

}  // namespace tokamak
