#include "run/run_saver.h"

#include "base/error.h"
#include "run/rank_decisions.h"

namespace tokamak {

void RunSaver::save(const RunProgress& done) {
  if (saved_step_ == done.step) return;
  auto in = enter(progress_of(ranks_), RankPhase::kSave);
  if (leads(ranks_)) start_.choices.save(start_.platform.tuning, backend_);
  reporter_.saving();
  auto path = save_progress(done, start_.resolved, start_.session->store(), *start_.data, reporter_.known_good());
  reporter_.saved(done.step);
  saved_step_ = done.step;
  start_.data->saved(done.step, done.samples);
  observer_.saved(done.step, path);
}

bool RunSaver::can_rescue() const { return ranks_ && !backend_.queue(0) && has_whole_state(start_.session->store()); }

bool RunSaver::should_rescue() const {
  return can_rescue() && (leads(ranks_) || ranks_->world().has_lost_leader());  // who leads may have a reason not to
}

void RunSaver::rescue(const RunProgress& done, const std::deque<StepMetrics>& recent) {
  bool leads = tokamak::leads(ranks_);
  if (done.step == 0 || (leads && done.step == saved_step_)) return;
  if (start_.session->is_torn())
    return observer_.rescue_told(
        fmt::format("step {} had begun to change the parameters when it failed: what came after step {} is lost",
                    done.step + 1, saved_step_));
  try {
    auto in = enter(progress_of(ranks_), RankPhase::kSave);
    reporter_.saving();
    auto path = rescue_progress(done, recent, start_.resolved, *start_.session, backend_, *start_.data,
                                reporter_.known_good(), leads);
    if (!path) return;
    start_.data->saved(done.step, done.samples);
    observer_.rescue_told(fmt::format("saved the state after step {} in {}", done.step, path->string()));
  } catch (const UserError& error) {  // why ranks are lost is told, too
    observer_.rescue_told(error.what());
  }
}

}  // namespace tokamak
