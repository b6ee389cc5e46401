#include "run/run_saver.h"

#include "base/error.h"
#include "checkpoint/checkpoint_folder.h"
#include "run/rank_decisions.h"

#include <chrono>

namespace tokamak {

void RunSaver::save(const RunProgress& done, bool is_extra) {
  if (saved_step_ == done.step) return;
  auto in = enter(progress_of(ranks_), RankPhase::kSave);
  if (leads(ranks_)) start_.choices.save(start_.platform.tuning, backend_);
  auto begin = std::chrono::steady_clock::now();
  reporter_.saving();
  CheckpointMarks marks = this->marks();
  marks.is_extra = is_extra;
  auto path = save_progress(done, start_.resolved, start_.session->store(), *start_.data, marks);
  reporter_.saved(done.step);
  saved_step_ = done.step;
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  events_.saved(done.step, path, seconds_);
  start_.data->saved(done.step, done.samples);
  observer_.saved(done.step, path);
}

void RunSaver::mark_best(int64_t step) {
  best_ = step;
  if (!leads(ranks_)) return;
  const TrainConfig& train = start_.resolved.asked.train;
  reporter_.saving();  // the losses that say so are on the disk before the one before it is removed
  point_best(checkpoints_folder(train.out), step);
}

void RunSaver::remove_old() const {
  const TrainConfig& train = start_.resolved.asked.train;
  if (leads(ranks_)) remove_old_checkpoints(train.out, keep_rule(train), reporter_.known_good().step, best_);
}

bool RunSaver::can_rescue() const { return ranks_ && !backend_.queue(0) && has_whole_state(start_.session->store()); }

bool RunSaver::should_rescue() const {
  return can_rescue() && (leads(ranks_) || ranks_->world().has_lost_leader());  // who leads may have a reason not to
}

void RunSaver::rescue(const RunProgress& done, const std::deque<StepMetrics>& recent, const std::string& cause) {
  bool leads = tokamak::leads(ranks_);
  if (done.step == 0 || (leads && done.step == saved_step_)) return;
  if (start_.session->is_torn())
    return observer_.rescue_told(
        fmt::format("step {} had begun to change the parameters when it failed: what came after step {} is lost",
                    done.step + 1, saved_step_));
  try {
    auto in = enter(progress_of(ranks_), RankPhase::kSave);
    auto begin = std::chrono::steady_clock::now();
    reporter_.saving();
    auto path = rescue_progress(done, recent, start_.resolved, *start_.session, backend_, *start_.data, marks(), leads);
    if (!path) return;
    if (!leads) events_.take_over(done.step, cause);
    events_.saved(done.step, *path, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    start_.data->saved(done.step, done.samples);
    observer_.rescue_told(fmt::format("saved the state after step {} in {}", done.step, path->string()));
  } catch (const UserError& error) {  // why ranks are lost is told, too
    observer_.rescue_told(error.what());
  }
}

}  // namespace tokamak
