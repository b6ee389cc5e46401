#include "profile/run_profiler.h"

#include "run/rank_decisions.h"

namespace tokamak {

void RunProfiler::step_begins(int64_t step, const WatchedRun& run) {
  if (step == first_) {
    run_.emplace(run);
    profiler_.emplace(run.session, run.queue, backend_, &run.loader, options_.steps,
                      replays_steps(run.session, options_.is_gpu));
  }
  if (profiler_) profiler_->step_begins();
}

void RunProfiler::data_read() {
  if (profiler_) profiler_->data_read();
}

void RunProfiler::step_submitted() {
  if (!profiler_) return;
  profiler_->step_submitted();
  if (!profiler_->done()) return;
  if (run_->queue.end()) return profiler_.reset();  // steps are missing, on all ranks alike
  int64_t observed = first_ + profiler_->num_steps() - 2 * options_.steps.steps;  // as many come behind them
  StepProfile profile = profiler_->take();
  ProfileReport report = gather_report(run_->session, profile, run_->platform, ranks_, options_);
  profiler_.reset();
  if (leads(ranks_)) done_(report, observed);
}

}  // namespace tokamak
