#include "run/run_saver.h"

#include "base/error.h"
#include "checkpoint/checkpoint_folder.h"
#include "run/rank_decisions.h"

#include <chrono>
#include <utility>

namespace tokamak {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

RunSaver::RunSaver(StartedRun& start, int64_t saved, StepReporter& reporter, RunEvents& events, Backend& backend,
                   TrainObserver& observer, const MeshRanks* ranks)
    : start_(start), reporter_(reporter), events_(events), backend_(backend), observer_(observer), ranks_(ranks),
      memory_(start.memory), saved_step_(saved), durable_step_(saved) {
  const TrainConfig& train = start_.resolved.asked.train;
  if (leads(ranks) && !train.archive.empty()) archiver_ = std::make_unique<Archiver>(train.archive, keep_rule(train));
}

int64_t RunSaver::save_in_background(int64_t free_bytes) {
  auto made = std::make_unique<BackgroundSaver>(*start_.session, backend_);
  int64_t bytes = made->copy_bytes();
  has_copy_memory_ = made->use_memory(std::move(start_.copy_memory));
  bool fits = has_copy_memory_ || free_bytes == 0 || bytes <= free_bytes;
  if (any_of(ranks_, !fits)) {
    observer_.message(fmt::format(
        "training waits for saves (train.background_saves): a copy of the state takes {} MiB of host memory on each "
        "rank, and {} do not have them",
        bytes >> 20, fits ? "some" : fmt::format("with {} MiB left some", free_bytes >> 20)));
    return 0;
  }
  background_ = std::move(made);
  return bytes;
}

void RunSaver::save(const RunProgress& done, bool is_extra) { save(done, is_extra, false); }

void RunSaver::save_now(const RunProgress& done, bool is_extra) {
  save(done, is_extra, true);
  settle();
}

void RunSaver::save(const RunProgress& done, bool is_extra, bool now) {
  if (saved_step_ == done.step) return;
  auto in = enter(progress_of(ranks_), RankPhase::kSave);
  auto begin = Clock::now();
  settle_before_next();
  if (leads(ranks_)) start_.choices.save(start_.platform.tuning, backend_);
  events_.saving();
  const TrainConfig& train = start_.resolved.asked.train;
  newest_ = {done, marks(), checkpoints_folder(train.out) / checkpoint_name(done.step), begin, 0, train.out};
  newest_.marks.is_extra = is_extra;
  bool in_background = !now && begin_in_background();
  if (!in_background) {
    reporter_.saving();
    save_checkpoint(train.out, state_of(newest_), start_.session->store(), keep_rule(train));
  }
  saved_step_ = done.step;
  reporter_.saved(done.step);
  newest_.stall_seconds = seconds_since(begin);
  if (!in_background) ended(newest_.stall_seconds);
}

void RunSaver::settle_before_next() {
  bool waits = is_open() && !is_keeping_ && !is_copied_ && !background_->has_ended();
  auto due = Clock::now();
  settle();
  if (!waits || !leads(ranks_)) return;
  auto until = [&](Clock::time_point end) { return std::chrono::duration<double>(end - newest_.begin).count(); };
  std::string told = slow_.note({newest_.done.step, seconds_since(due), seconds_, until(due)});
  if (!told.empty()) observer_.message(told);
}

CheckpointState RunSaver::state_of(const Saved& saved) const {
  return describe_progress(saved.done, start_.resolved, *start_.data, leads(ranks_) && !is_keeping_, saved.marks);
}

// What takes the host's time, files and their syncs, is done when the device has a step to do.
void RunSaver::write() {
  if (!std::exchange(is_copied_, false)) return;
  auto in = enter(progress_of(ranks_), RankPhase::kSave);
  newest_.stall_seconds = seconds_since(newest_.begin);
  if (is_keeping_) return write_kept();
  saved_step_ = durable_step_;  // if that fails
  reporter_.saving();
  if (!background_->write(newest_.out, state_of(newest_), keep_rule(start_.resolved.asked.train)))
    refuse_save(newest_.done.step, "not all ranks see the run's folder any more");
  saved_step_ = newest_.done.step;
}

// Whether all ranks have it: what the system said at the start may not hold any more, and of memory for copies from a
// GPU it gives less.
bool RunSaver::has_memory() {
  if (std::exchange(knows_memory_, true)) return true;
  std::string lack = background_->lacks_memory();
  if (!any_of(ranks_, !lack.empty())) return true;
  int64_t bytes = background_->copy_bytes();
  background_.reset();
  observer_.message(fmt::format(
      "training waits for saves (train.background_saves): {} got no {} MiB of host memory for a copy of the state{}",
      lack.empty() ? "some ranks" : "this rank", bytes >> 20, lack.empty() ? "" : ": " + lack));
  return false;
}

// The first is written at once: whether ranks share a folder is seen then, while the state still stands.
bool RunSaver::begin_in_background() {
  if (!background_ || !has_memory()) return false;
  background_->copy();
  if (std::exchange(knows_folders_, true)) return is_copied_ = true;
  const TrainConfig& train = start_.resolved.asked.train;
  reporter_.saving();
  if (background_->write(train.out, state_of(newest_), keep_rule(train))) return true;
  background_.reset();
  observer_.message("training waits for saves: not all ranks see the run's folder, so rank 0 writes all");
  return false;
}

void RunSaver::ended(double seconds) {
  int64_t step = newest_.done.step;
  durable_step_ = step;
  seconds_ = seconds;
  events_.saved(step, newest_.path, seconds, newest_.stall_seconds);
  start_.data->saved(step, newest_.done.samples);
  int64_t checked_every = start_.resolved.asked.train.verify_every;  // others may turn out to be wrong
  if (archiver_ && (checked_every == 0 || step % checked_every == 0)) archiver_->add(newest_.path);
  observer_.saved(step, newest_.path);
  settle_marks();
}

void RunSaver::settle_marks() {
  if (std::exchange(marks_later_, false)) mark_best(best_);
  if (std::exchange(removes_later_, false)) remove_old();
}

void RunSaver::look() {
  if (is_open() && !is_copied_ && background_->has_ended() && background_->failure().empty()) settle();
  warn_of_archive();
}

void RunSaver::warn_of_archive() {
  std::string warning = archiver_ ? archiver_->take_warning() : "";
  if (!warning.empty()) observer_.message(warning);
}

void RunSaver::finish_archive() {
  if (archiver_) archiver_->wait();
  warn_of_archive();
}

void RunSaver::settle() {
  write();
  if (!is_open()) return;
  if (is_keeping_) return settle_kept();
  auto in = enter(progress_of(ranks_), RankPhase::kSave);
  saved_step_ = durable_step_;  // if that has failed
  double seconds = background_->take();
  saved_step_ = newest_.done.step;
  ended(seconds);
}

// A kept state may still be under way, and what is as new is as good.
void RunSaver::keep(const RunProgress& done) {
  if (!memory_.are_kept()) return;
  auto in = enter(progress_of(ranks_), RankPhase::kSave);
  if (any_of(ranks_, is_open() && !background_->has_ended())) return;
  settle();
  if (!memory_.are_kept()) return;
  if (!background_ || !has_memory()) return give_up_keeping("training waits for saves (train.background_saves)");
  newest_ = {done,         marks(), checkpoints_folder(memory_.folder) / checkpoint_name(done.step),
             Clock::now(), 0,       memory_.folder};
  newest_.unsaved_seconds = events_.unsaved_seconds();
  is_keeping_ = true;
  background_->copy();
  is_copied_ = true;
  if (!std::exchange(knows_kept_folder_, true)) write();
}

void RunSaver::write_kept() {
  try {
    MemoryOfMachines* others = memory_.others.get();
    CheckpointState state = state_of(newest_);
    if (!(others ? background_->write(newest_.out, state, others->machines, *others->links)
                 : background_->write(newest_.out, state, 1)))
      give_up_keeping("not all ranks of a machine see its folder");
  } catch (const UserError& error) {
    give_up_keeping(error.what());
  }
}

void RunSaver::settle_kept() {
  auto in = enter(progress_of(ranks_), RankPhase::kSave);
  try {
    background_->take();
    if (leads_memory(memory_, ranks_)) note_step_seconds(newest_.path, newest_.unsaved_seconds);
  } catch (const UserError& error) {
    give_up_keeping(error.what());
  }
  is_keeping_ = false;
  settle_marks();
}

void RunSaver::give_up_keeping(std::string_view why) {
  is_keeping_ = false;
  memory_ = {};
  observer_.message(fmt::format("no states are kept in memory any more (--memory_every): {}", why));
}

void RunSaver::forget_kept() {
  settle();
  if (leads_memory(memory_, ranks_)) forget_kept_states(memory_);
}

void RunSaver::settle_quietly() {
  try {
    settle();
  } catch (const std::exception&) {
    // Another error is under way.
  }
}

void RunSaver::abandon() {
  if (!is_open()) return;
  bool is_whole = background_->abandon() && !std::exchange(is_copied_, false);
  if (is_keeping_) return;
  if (is_whole)
    ended(newest_.stall_seconds);
  else
    saved_step_ = durable_step_;
}

// Of a checkpoint that has no name yet, when it has one.
void RunSaver::mark_best(int64_t step) {
  best_ = step;
  if (!leads(ranks_)) return;
  if (is_open()) return void(marks_later_ = true);
  const TrainConfig& train = start_.resolved.asked.train;
  reporter_.saving();  // the losses that say so are on the disk before the one before it is removed
  point_best(checkpoints_folder(train.out), step);
}

void RunSaver::remove_old() {
  if (is_open()) return void(removes_later_ = true);
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
    auto begin = Clock::now();
    events_.saving();
    reporter_.saving();
    auto path = rescue_progress(done, recent, start_.resolved, *start_.session, backend_, *start_.data, marks(), leads);
    if (!path) return;
    if (!leads) events_.take_over(done.step, cause);
    double seconds = seconds_since(begin);
    events_.saved(done.step, *path, seconds, seconds);
    start_.data->saved(done.step, done.samples);
    observer_.rescue_told(fmt::format("saved the state after step {} in {}", done.step, path->string()));
  } catch (const UserError& error) {  // why ranks are lost is told, too
    observer_.rescue_told(error.what());
  }
}

}  // namespace tokamak
