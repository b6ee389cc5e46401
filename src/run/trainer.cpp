#include "run/trainer.h"

#include "base/error.h"
#include "checkpoint/checkpoint_folder.h"
#include "data/check_targets.h"
#include "data/document_starts.h"
#include "model/model.h"
#include "model/utilization.h"
#include "run/evaluator.h"
#include "run/learning_rate.h"
#include "run/progress.h"
#include "run/rank_decisions.h"
#include "run/run_events.h"
#include "run/run_outline.h"
#include "run/run_samples.h"
#include "run/run_saver.h"
#include "run/shadow.h"
#include "run/start_run.h"
#include "run/step_queue.h"
#include "run/step_reporter.h"
#include "run/suspect_checkpoints.h"
#include "run/train_tasks.h"
#include "run/validation_watch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <map>

#include <fmt/ranges.h>

namespace tokamak {
namespace {

struct StopAsked {};  // thrown out of an evaluation

constexpr size_t kRecentSteps = 16;  // more than one rank can be ahead of another

// The steps of one phase of train.ramp; of most runs all.
class Trainer {
 public:
  Trainer(StartedRun start, const RunConfig& asked, Backend& backend, TrainObserver& observer, const MeshRanks* ranks,
          StepWatcher* watcher)
      : start_(std::move(start)), run_(start_.resolved), train_(run_.asked.train), session_(*start_.session),
        end_(std::min(train_.steps, run_.phase.until)), data_(*start_.data), observer_(observer), ranks_(ranks),
        watcher_(watcher), has_device_(backend.queue(0)),
        samples_(start_.clock.time("samples", [&] { return RunSamples(session_, start_.platform, backend, ranks); })),
        events_(train_.out, start_.platform.target, observer, ranks),
        queue_(
            session_, backend, [this](const StepNews& mine) { return ask_all(mine); }, progress_of(ranks)) {
    if (start_.is_first)
      for (const std::string& note : start_notes(asked, start_)) observer_.message(note);
    if (train_.eval_every > 0) make_evaluator();
    if (!train_.tasks.empty()) {
      tasks_ = std::make_unique<TrainTasks>(session_, start_.platform, backend, ranks, data_.tokenizer());
      for (const std::string& note : tasks_->notes()) observer_.message(note);
    }
    if (has_shadow(run_))
      start_.clock.time("shadow",
                        [&] { shadow_ = std::make_unique<Shadow>(session_, start_.platform, backend, ranks); });
    done_ = load_values(start_, queue_, observer_);
    keep_files();
    begun_ = done_.step;
    reporter_ = std::make_unique<StepReporter>(run_.asked, step_work(), done_.step, observer_, leads(ranks),
                                               start_.found ? start_.found->state.good : KnownGoodState());
    saver_ = std::make_unique<RunSaver>(start_, done_.step, *reporter_, events_, backend, observer_, ranks);
    watch_before();
    events_.carry(carried_seconds());
    if (trains() && saves_between()) copy_bytes_ = saver_->save_in_background(start_.host_bytes_left);
    if (trains()) {
      data_.started(done_.step, done_.samples, reporter_->reached());
      if (start_.is_first) events_.began(begun_);
      if (start_.is_first) observer_.message(format_outline(outline()));
    }
    saver_->mark_best(watch_->best_step());
    start_.clock.lap("files");
  }

  TrainSummary run(const std::function<bool()>& stop) {
    stop_ = [this, stop] { return stopping_ = stopping_ || stop(); };  // who has said so does not take it back
    if (!ranks_)
      queue_.break_long_steps(stop);
    else if (!has_device_)
      queue_.break_lost_steps([this] { ranks_->world().check(); });
    if (saver_->can_rescue()) observer_.may_rescue();
    try {
      return run_steps();
    } catch (const CommunicationError& error) {
      saver_->abandon();
      if (leads(ranks_)) events_.failed(last_step(), error.what());
      if (!is_suspect_) rescue(error.what());
      if (has_device_) observer_.lost(error.what());
      throw;
    } catch (const std::exception& error) {
      saver_->settle_quietly();
      events_.failed(last_step(), error.what());
      throw;
    }
  }

  /// Whether another phase is to come.
  bool goes_on() const { return !summary_.stopped && done_.step < train_.steps && !watch_->is_over(); }
  std::unique_ptr<RunFolder> release_folder() { return std::move(start_.folder); }
  CopyMemory release_copy_memory() { return saver_->release_memory(); }

 private:
  TrainSummary run_steps() {
    int64_t total = train_.steps;
    bool trained = trains(), stopped = !evaluate_before();
    if (!trained && done_.step >= total)
      observer_.message(
          fmt::format("nothing to do: {} of {} steps are done; raise --train.steps to go on", done_.step, total));
    while (trains() && !stopped) {
      submit_step();
      if (done_.step == begun_ + 1) saver_->reserve();
      saver_->write();
      if (!run_.compile.async) queue_.finish();
      if (needs_outcome())
        stopped = !synchronise();
      else if (queue_.end())
        stopped = has_ended();
      else
        report(queue_.take());
      saver_->look();
    }
    await_files();
    saver_->settle();
    summary_.stopped = stopped;
    if (goes_on()) return summary_;
    saver_->finish_archive();
    if (done_.step < total && !stopped)
      observer_.message(fmt::format("after step {} {}", done_.step, watch_->why_over()));
    if (trained) data_.ended(done_.step, done_.samples);
    if (trained) events_.ended(done_.step, stopped);
    summary_.goodput = events_.goodput();
    summary_.steps = done_.step;
    summary_.total_steps = total;
    summary_.data_wait = reporter_->data_wait();
    return summary_;
  }

  bool trains() const { return done_.step < end_ && !watch_->is_over(); }

  RunOutline outline() const {
    RunOutline outline = make_outline(run_, start_.platform.target, data_, done_.step, session_.run().seconds,
                                      session_.compiled().total_bytes() + samples_.planned_bytes());
    outline.copy_bytes = copy_bytes_;
    return outline;
  }

  void make_evaluator() {
    if (std::shared_ptr<const Corpus> corpus = data_.validation())
      evaluator_ =
          std::make_unique<Evaluator>(corpus, data_.tokenizer(), run_, count_windows(run_, train_.eval_batches));
    else
      observer_.message(
          fmt::format("no validation: it needs data.val_path, or data prepared with a validation part of more than {} "
                      "tokens (model.context)",
                      run_.asked.model.context));
  }

  // Of the validation losses before, which the rank that leads has.
  void watch_before() {
    ValLosses all = reporter_->val_losses(), saved;
    auto is_saved = [&](const ValLoss& loss) {
      return std::filesystem::exists(checkpoints_folder(train_.out) / checkpoint_name(loss.step));
    };
    std::ranges::copy_if(all, std::back_inserter(saved), is_saved);
    auto of_first = [&](const ValLosses& losses) { return val_losses_from_text(of_leader(ranks_, to_text(losses))); };
    all = of_first(all);
    watch_ = std::make_unique<ValidationWatch>(train_, all, of_first(saved));
  }

  // To write a large vocabulary takes longer than the first step, which goes on meanwhile.
  void keep_files() {
    if (!start_.folder) return;
    start_.folder->keep_config(run_.settled());
    if (!start_.found || start_.found->state.tokenizer.empty())
      tokenizer_kept_ = std::async(std::launch::async, [this] { start_.folder->keep_tokenizer(data_.tokenizer()); });
  }

  void await_files() {
    if (tokenizer_kept_.valid()) tokenizer_kept_.get();
  }

  Peak peak() const { return peak_of(start_.platform.target, run_.compile.precision); }
  StepWork step_work() const {
    ModelConfig model = run_.asked.model;
    model.context = run_.phase.sequence;
    return {double(session_.tokens_per_step()), flops_per_token(model), peak().flops * double(run_.mesh.num_ranks())};
  }

  int64_t last_step() const { return std::max(begun_, recorded_step_); }
  bool is_last() const { return done_.step == train_.steps; }
  bool is_last_of_phase() const { return done_.step == end_; }
  bool due(int64_t every) const { return every > 0 && done_.step % every == 0; }

  bool asks_tasks() const { return tasks_ && (is_last() || due(train_.tasks_every)); }

  // Whether steps follow a save.
  bool saves_between() const {
    return train_.background_saves && (train_.keep_best || start_.memory.are_kept() ||
                                       (train_.checkpoint_every > 0 && done_.step + train_.checkpoint_every < end_));
  }

  // Of steps of a start before whose outcome is in the kept state that this one goes on from, and in no save.
  double carried_seconds() const {
    bool is_kept = start_.found && start_.memory.are_kept() &&
                   start_.found->path.parent_path() == checkpoints_folder(start_.memory.folder);
    return is_kept ? noted_step_seconds(start_.found->path) : 0;
  }

  bool needs_outcome() const {
    return is_last_of_phase() || due(start_.memory.every) || due(train_.eval_every) || asks_tasks() ||
           due(train_.sample_every) || due(train_.checkpoint_every) || due(train_.verify_every) || has_shadow_now();
  }

  bool has_shadow_now() const { return shadow_ && due(train_.shadow_every); }

  // On the steps' thread, before each of them.
  StepNews ask_all(StepNews mine) const {
    mine.stops = stop_();
    if (mine.failure.empty()) mine.failure = saver_->failure();
    return tell_all(ranks_, mine);
  }

  // Where its data fails, all ranks learn so when the steps before have run.
  void submit_step() {
    if (watcher_) watcher_->step_begins(done_.step + 1, {session_, queue_, data_.loader(), start_.platform});
    auto begin = StepQueue::Clock::now();
    std::vector<Batch> batches;
    std::string failure;
    try {
      auto in = enter(progress_of(ranks_), RankPhase::kData);
      for (int64_t i = 0; i < run_.micro_batches; ++i) {
        batches.push_back(data_.loader().next());
        cut_starts(batches.back().documents, run_.asked.model.context, run_.phase.sequence);
      }
      require_targets(batches, done_.step + 1);
    } catch (const std::exception& error) {
      data_error_ = std::current_exception();
      failure = error.what();
    }
    if (watcher_) watcher_->data_read();
    std::chrono::duration<double, std::milli> wait = StepQueue::Clock::now() - begin;
    double lr = learning_rate(done_.step, run_.asked.optimizer, train_.steps);
    if (shadow_ && !batches.empty() && (done_.step + 1) % train_.shadow_every == 0) shadow_batch_ = batches[0];
    before_[done_.step] = done_;
    done_ = {done_.step + 1, done_.tokens + session_.tokens_per_step(), data_.loader().position()};
    queue_.submit(std::move(batches), {.step = done_.step, .lr = lr, .data_wait_ms = wait.count()}, failure);
    if (watcher_) watcher_->step_submitted();
    if (!failure.empty()) queue_.finish();
  }

  // Whether steps have ended early; then what has run is saved. Throws where data is the reason.
  bool has_ended() {
    queue_.finish();
    std::optional<StepQueue::End> end = queue_.end();
    if (!end) return false;
    if (end->last_step < done_.step) done_ = before_.at(end->last_step);
    report(queue_.take());
    saver_->save_now(done_);
    if (end->news.stops) return true;
    if (data_error_) std::rethrow_exception(data_error_);
    throw UserError(end->news.failure);
  }

  void report(const std::vector<StepMetrics>& steps) {
    for (StepMetrics metrics : steps) {
      record(metrics);
      reporter_->show(metrics);
    }
  }

  void record(StepMetrics& metrics) {
    before_.erase(before_.begin(), before_.lower_bound(metrics.step));
    if (recorded_step_ == 0) {
      await_files();
      start_.clock.lap("first step", *queue_.first_end());
      observer_.started(start_.clock.phases());
    }
    events_.took(metrics);
    bool found_good = reporter_->record(metrics);
    if (found_good) saver_->remove_old();  // of those before it none is needed any more
    recorded_step_ = metrics.step;
    recent_.push_back(metrics);
    if (recent_.size() > kRecentSteps) recent_.pop_front();
  }

  // Waits for the steps under way, then does what needs their outcome. What may fail comes after saving. False: they
  // have ended early.
  bool synchronise() {
    if (has_ended()) return false;
    std::vector<StepMetrics> steps = queue_.take();
    StepMetrics newest = steps.back();
    steps.pop_back();
    report(steps);
    record(newest);
    bool evaluates = evaluator_ && (is_last() || due(train_.eval_every));
    if (has_shadow_now()) look_at_shadow(newest);
    if (!evaluates) reporter_->show(newest);
    if (due(train_.verify_every)) verify();
    bool is_saved = is_last() || due(train_.checkpoint_every);
    if (is_last_of_phase())
      saver_->save_now(done_, !is_saved);
    else if (is_saved)
      saver_->save(done_);
    else if (due(start_.memory.every))
      saver_->keep(done_);
    warn_of_kill(newest);
    if (evaluates || asks_tasks() || due(train_.sample_every)) saver_->write();
    try {
      if (evaluates) {
        std::optional<double> loss = evaluate();
        if (loss) reporter_->add_val_loss(newest, *loss);
        reporter_->show(newest);
        if (!loss) return saver_->save_now(done_), false;
        judge(*loss);
      }
      if (asks_tasks() && !ask_tasks(newest)) return saver_->save_now(done_), false;
      if (due(train_.sample_every) && !any_of(ranks_, stop_())) sample();
    } catch (...) {
      saver_->save_now(done_);
      throw;
    }
    return true;
  }

  // Before the step is saved. Throws on all ranks where bits differ; what was saved since the last verified step may be
  // wrong, then, and so is this rank's state.
  void verify() {
    int64_t every = train_.verify_every, verified = (done_.step - 1) / every * every;
    is_suspect_ = true;
    std::string wrong;
    queue_.run([&] { wrong = session_.compare_slots(done_.step); });
    is_suspect_ = !wrong.empty();
    if (!is_suspect_) return;
    saver_->forget_kept();
    go_back(ranks_, train_.out, verified, wrong);
  }

  // Before the step is saved, with what follows from it.
  void look_at_shadow(StepMetrics& newest) {
    auto in = enter(progress_of(ranks_), RankPhase::kEvaluation);
    ShadowMetrics shadow;
    queue_.run([&] { shadow = shadow_->compare(shadow_batch_, done_.step); });
    reporter_->add_shadow(newest, shadow);
    if (shadow.least < train_.shadow_bound && !is_last()) fall_back(shadow);
  }

  // This phase ends, and the next one goes on without what has drifted; its checkpoint says so.
  void fall_back(const ShadowMetrics& shadow) {
    auto run = [&](const std::function<void()>& task) { queue_.run(task); };
    std::vector<std::string> causes = shadow_->find_causes(shadow_batch_, done_.step, train_.shadow_bound, run);
    if (causes.empty()) return;
    std::vector<std::string>& except = start_.resolved.compile.fp8_except;
    except.insert(except.end(), causes.begin(), causes.end());
    end_ = done_.step;
    observer_.message(describe_fallback(shadow, causes, done_.step, train_.shadow_bound));
    events_.fell_back(done_.step, fmt::format("{}", fmt::join(causes, ", ")));
  }

  // Once, when it is known how long a save takes.
  void warn_of_kill(const StepMetrics& newest) {
    std::string warning = grace_warning(double(train_.grace_seconds), newest.ms * 1e-3, saver_->seconds(), ranks_);
    if (!warning.empty() && !std::exchange(told_grace_, true)) observer_.message(warning);
  }

  void sample() {
    auto in = enter(progress_of(ranks_), RankPhase::kSample);
    std::optional<std::string> text = samples_.write(queue_, data_, stop_);
    if (!text) return;
    observer_.sample(done_.step, *text);
    reporter_->add_sample(done_.step, *text);
  }

  // What the validation loss of the newest step means for its checkpoint, and for the steps to come.
  void judge(double loss) {
    watch_->add({done_.step, loss});
    bool is_best = watch_->best_step() == done_.step;
    if (is_best || watch_->is_over()) saver_->save(done_, !watch_->is_over());
    if (!is_best) return;
    saver_->mark_best(done_.step);
    saver_->remove_old();
  }

  // What a process saved that ended before it had evaluated it. False: a request to stop came first.
  bool evaluate_before() {
    if (!start_.found || !evaluator_) return true;
    TrainConfig before = config_of(*start_.found).train;
    bool due = before.eval_every > 0 && (done_.step == before.steps || done_.step % before.eval_every == 0);
    if (!any_of(ranks_, due && reporter_->lacks_val_loss())) return true;
    std::optional<double> loss = evaluate();
    if (!loss) return false;
    reporter_->add_missing_val_loss(*loss);
    judge(*loss);
    observer_.message(fmt::format("validation loss after step {}, which was not evaluated yet: {}", done_.step,
                                  format_number(*loss, 4)));
    return true;
  }

  // Other ranks are lost. What they would have to give is not needed where this one has all of the state.
  void rescue(const std::string& cause) {
    if (!saver_->should_rescue()) return;
    report(queue_.take_last());
    if (recorded_step_ == 0) return;
    saver_->rescue(recorded_step_ == done_.step ? done_ : before_.at(recorded_step_), recent_, cause);
  }

  // False: a request to stop came first.
  bool ask_tasks(StepMetrics& newest) {
    auto in = enter(progress_of(ranks_), RankPhase::kEvaluation);
    std::optional<std::vector<TaskResult>> results;
    queue_.run([&] { results = tasks_->ask([&] { return any_of(ranks_, stop_()); }); });
    if (!results) return false;
    reporter_->add_tasks(newest, metrics_of(*results));
    for (const TaskResult& result : *results) observer_.message(describe(result, done_.step));
    return true;
  }

  // The validation loss. Nothing when a request to stop came meanwhile: then the next start evaluates the step.
  std::optional<double> evaluate() {
    auto in = enter(progress_of(ranks_), RankPhase::kEvaluation);
    std::optional<Evaluation> told;
    auto losses_of = [&](std::span<const Batch> batches) {
      if (any_of(ranks_, stop_())) throw StopAsked();
      return session_.evaluate(batches);
    };
    queue_.run([&] {
      try {
        told = evaluator_->evaluate(losses_of);
      } catch (const StopAsked&) {
        // `told` stays empty.
      }
    });
    if (!told) return std::nullopt;
    const Evaluation& evaluation = *told;
    summary_.val_loss = evaluation.loss;
    if (evaluation.bits_per_byte > 0) summary_.bits_per_byte = evaluation.bits_per_byte;
    summary_.val_windows = evaluation.windows;
    summary_.all_val_windows = evaluation.all_windows;
    if (!evaluation.unknown.empty() && !std::exchange(told_unknown_, true)) observer_.message(evaluation.unknown);
    // The same for all, as what follows from it is done by all.
    return val_losses_from_text(of_leader(ranks_, to_text({{done_.step, evaluation.loss}}))).front().loss;
  }

  StartedRun start_;
  const ResolvedRun& run_;
  const TrainConfig& train_;
  Session& session_;
  int64_t end_;  // steps of the run that are done when this phase is over
  RunData& data_;
  TrainObserver& observer_;
  const MeshRanks* ranks_;  // null: one rank
  StepWatcher* watcher_;    // null: nobody
  bool has_device_;         // that computes beside the host
  RunSamples samples_;
  std::unique_ptr<Evaluator> evaluator_;  // null: nothing is validated
  std::unique_ptr<TrainTasks> tasks_;     // null: there are none
  std::unique_ptr<Shadow> shadow_;        // null: there is none
  Batch shadow_batch_;                    // of the newest step that has one
  std::unique_ptr<StepReporter> reporter_;
  RunEvents events_;
  std::unique_ptr<RunSaver> saver_;
  std::unique_ptr<ValidationWatch> watch_;
  std::function<bool()> stop_;  // whether this rank is asked to stop; of any thread
  std::atomic<bool> stopping_ = false;
  bool is_suspect_ = false;                // what this rank would save
  std::exception_ptr data_error_;          // of this rank
  RunProgress done_;                       // or under way
  std::map<int64_t, RunProgress> before_;  // of steps under way, by the steps done before
  int64_t copy_bytes_ = 0;                 // of the state, to save in the background; 0: there is none
  int64_t begun_ = 0;                      // steps that were done before this start
  int64_t recorded_step_ = 0;              // the last of this start; 0: none
  std::deque<StepMetrics> recent_;
  TrainSummary summary_;
  std::future<void> tokenizer_kept_;
  bool told_grace_ = false;    // that a request to stop may end in a kill
  bool told_unknown_ = false;  // why there are no bits per byte
  StepQueue queue_;            // last: its thread uses the others
};

}  // namespace

TrainSummary train(const RunConfig& config, const Platform& platform, Backend& backend, TrainObserver& observer,
                   const std::function<bool()>& stop, const MeshRanks* ranks, StepWatcher* watcher,
                   const MemoryStates& asked_memory) {
  TOKAMAK_CHECK(config.train.steps > 0, "the length of the run is not resolved");
  MemoryStates memory = agree_on_memory(asked_memory, ranks);
  std::optional<StartedRun> start(start_run(config, platform, backend, observer, ranks, memory));
  while (true) {
    std::unique_ptr<RunFolder> folder;
    CopyMemory copy_memory;  // on a GPU it takes seconds to get
    {
      Trainer phase(std::move(*start), config, backend, observer, ranks, watcher);
      TrainSummary summary = phase.run(stop);
      if (!phase.goes_on()) return summary;
      folder = phase.release_folder();
      copy_memory = phase.release_copy_memory();
    }  // its memory is free before the next one takes some
    start.emplace(start_phase(config, platform, backend, observer, ranks, std::move(folder), memory));
    start->copy_memory = std::move(copy_memory);
  }
}

}  // namespace tokamak
