#include "run/trainer.h"

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/run_folder.h"
#include "compile/memory_advice.h"
#include "config/config.h"
#include "config/json.h"
#include "data/check_targets.h"
#include "data/data_tokenizer.h"
#include "data/visible_text.h"
#include "model/model.h"
#include "model/utilization.h"
#include "passes/seed_cuts.h"
#include "passes/step_mesh.h"
#include "run/choices_file.h"
#include "run/evaluator.h"
#include "run/generator.h"
#include "run/learning_rate.h"
#include "run/progress.h"
#include "run/rank_decisions.h"
#include "run/rescue.h"
#include "run/run_changes.h"
#include "run/run_progress.h"
#include "run/step_queue.h"
#include "run/step_reporter.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>

namespace tokamak {
namespace {

constexpr double kSlowStep = 20;     // seconds
constexpr int64_t kLargeVocab = 4;   // times the data's
constexpr size_t kRecentSteps = 16;  // more than one rank can be ahead of another

// The rank that leads puts in order what a killed process left behind before the others look.
std::optional<FoundCheckpoint> find_start(const RunConfig& config, TrainObserver& observer, const MeshRanks* ranks) {
  std::vector<std::string> warnings;
  std::optional<FoundCheckpoint> found;
  if (!leads(ranks)) meet(ranks);
  if (config.train.resume) found = find_checkpoint(config.train.out, &warnings);
  for (const std::string& warning : warnings) observer.message("warning: " + warning);
  if (leads(ranks)) {
    repair_checkpoints(config.train.out, found, config.train.keep_checkpoints);
    meet(ranks);
  }
  require_same(ranks, "checkpoint to go on from", found ? found->path.filename().string() : "none");
  return found;
}

// Whether the ranks of tensor together lack parts of the parameters, which others have.
bool cuts_parameters(const TensorStore& store) {
  auto is_over_others = [](const Cut& cut) { return !keeps_parameters_cut(cut.axis); };
  return std::any_of(store.names().begin(), store.names().end(), [&](const std::string& name) {
    const std::vector<Cut>& cuts = store.layout(name).cuts;
    return is_parameter(store.layout(name).role) &&
           (!store.is_here(name) || std::any_of(cuts.begin(), cuts.end(), is_over_others));
  });
}

// The rates behind the choice of a precision are measured anew at every start, but a run must go on as it began.
RunConfig settle(const RunConfig& asked, const std::optional<FoundCheckpoint>& found) {
  RunConfig config = with_data_vocab(asked);
  return found ? going_on(config, *found) : config;
}

// As the rank that leads would run it, on the target that it has.
ResolvedRun resolve_alike(const RunConfig& asked, const Target& target, const std::optional<FoundCheckpoint>& found,
                          const MeshRanks* ranks) {
  Target same = of_leader(ranks, target);
  return resolve(of_leader(ranks, settle(asked, found)), same);
}

class Trainer {
 public:
  Trainer(const RunConfig& config, const Platform& platform, Backend& backend, TrainObserver& observer,
          const MeshRanks* ranks, StepWatcher* watcher)
      : observer_(observer), ranks_(ranks), watcher_(watcher),
        folder_(leads(ranks) ? std::make_unique<RunFolder>(config.train.out) : nullptr),
        found_(find_start(config, observer, ranks)), run_(resolve_alike(config, platform.target, found_, ranks)),
        backend_(backend), data_(run_, found_ ? &*found_ : nullptr, leads(ranks)), initial_(begin_initial_values()),
        choices_(run_.asked.train.out), platform_(start_.time("tuning", [&] { return tune_here(platform); })),
        session_(start_.time("compiling", [&] { return make_session(); })),
        generator_(start_.time("samples", [&] { return make_generator(); })),
        queue_(session_, backend, [this](const StepNews& mine) { return ask_all(mine); }) {
    if (config.compile.precision == Precision::kTf32 && run_.compile.precision != Precision::kTf32)
      observer_.message("compile.precision = tf32 means fp32 here: this device has no units for TF32");
    for (const std::string& note : data_.notes()) observer_.message(note);
    if (std::string warning = reference_warning(session_.reference_nodes()); !warning.empty())
      observer_.message(warning);
    check_budget();
    check_size();
    if (run_.asked.train.eval_every > 0) make_evaluator();
    start_or_resume();
    if (folder_) {
      folder_->keep_config(run_.settled());
      if (!found_ || found_->state.tokenizer.empty()) folder_->keep_tokenizer(data_.tokenizer());
    }
    reporter_ = std::make_unique<StepReporter>(run_.asked, step_work(), done_.step, observer_, leads(ranks),
                                               found_ ? found_->state.good : KnownGoodState());
    if (done_.step < run_.asked.train.steps) {
      data_.started(done_.step, done_.samples, reporter_->reached());
      observer_.message(format_outline(outline()));
    }
    start_.lap("files");
  }

  TrainSummary run(const std::function<bool()>& stop) {
    stop_ = stop;
    if (!ranks_) queue_.break_long_steps(stop);
    if (can_rescue()) observer_.may_rescue();
    try {
      return run_steps();
    } catch (const CommunicationError&) {
      rescue();
      throw;
    }
  }

 private:
  TrainSummary run_steps() {
    int64_t total = run_.asked.train.steps;
    bool stopped = false, trained = done_.step < total;
    evaluate_before();
    if (!trained)
      observer_.message(
          fmt::format("nothing to do: {} of {} steps are done; raise --train.steps to go on", done_.step, total));
    while (done_.step < total && !stopped) {
      submit_step();
      if (!run_.compile.async) queue_.finish();
      if (needs_outcome())
        stopped = !synchronise();
      else if (queue_.end())
        stopped = has_ended();
      else
        report(queue_.take());
    }
    if (trained) data_.ended(done_.step, done_.samples);
    summary_.steps = done_.step;
    summary_.total_steps = total;
    summary_.stopped = stopped;
    summary_.data_wait = reporter_->data_wait();
    return summary_;
  }

  RunOutline outline() const {
    return {.parameters = count_parameters(run_.asked.model),
            .precision = std::string(precision_name(run_.compile.precision)),
            .memory_bytes = session_.compiled().total_bytes() + (generator_ ? generator_->planned_bytes() : 0),
            .done = done_.step,
            .steps = run_.asked.train.steps,
            .step_tokens = session_.tokens_per_step(),
            .epoch_tokens = data_.epoch_tokens(),
            .out = run_.asked.train.out,
            .checkpoint_every = run_.asked.train.checkpoint_every,
            .peak = peak().of_ranks(num_ranks())};
  }

  // The pass does what it can; what cannot be recomputed away is said rather than left to be noticed.
  void check_budget() {
    std::string warning = budget_warning(session_.compiled().intermediate_bytes(), run_.compile.memory_budget_gib);
    if (!warning.empty()) observer_.message(warning);
  }

  // What is easily asked for by mistake: the default sizes on a small machine, another vocabulary than the data's.
  void check_size() {
    if (double seconds = session_.run().seconds; seconds > kSlowStep)
      observer_.message(fmt::format(
          "warning: a step of this model takes about {} here, all {} of them {}; --model.preset=small is a small model",
          format_duration(seconds), run_.asked.train.steps, format_duration(seconds * double(run_.asked.train.steps))));
    if (int64_t needed = data_.needed_vocab(); needed > 0 && run_.asked.model.vocab > kLargeVocab * needed)
      observer_.message(
          fmt::format("warning: model.vocab = {}, but the data has only {} tokens: the others cost memory and time and "
                      "are never learned; --model.vocab=0 takes the data's",
                      run_.asked.model.vocab, needed));
  }

  void make_evaluator() {
    if (std::shared_ptr<const Corpus> corpus = data_.validation())
      evaluator_ = std::make_unique<Evaluator>(corpus, data_.tokenizer(), run_,
                                               count_windows(run_, run_.asked.train.eval_batches));
    else
      observer_.message(
          fmt::format("no validation: it needs data.val_path, or data prepared with a validation part of more than {} "
                      "tokens (model.context)",
                      run_.asked.model.context));
  }

  std::unique_ptr<InitialValues> begin_initial_values() {
    start_.lap("data");
    if (found_ || !run_.asked.model.from.empty()) return nullptr;
    return std::make_unique<InitialValues>(model_parameters(run_.asked.model), run_.asked.train.seed);
  }

  // Measured by the rank that leads alone: what is chosen decides the graph, and that must be one for all.
  Platform tune_here(const Platform& platform) {
    free_bytes_ = backend_.free_bytes();  // others may share it; here all wait for each other
    require_same(ranks_, "data", data_.description());
    Platform tuned = platform;
    tuned.target = of_leader(ranks_, platform.target);
    if (!leads(ranks_)) return await_choices(ranks_, tuned.tuning, backend_), tuned;
    tuned = choices_.tune(run_, tuned, backend_, found_.has_value(), observer_);
    free_bytes_ = backend_.free_bytes();
    return tuned;
  }

  // The others wait in tune_here until the rank that leads has compiled, which is when kernels are chosen.
  Session make_session() {
    Session session(run_, platform_, backend_, free_bytes_, ranks_);
    if (ranks_ && leads(ranks_)) give_choices(ranks_, platform_.tuning, backend_);
    return session;
  }

  // Now rather than at the first sample, where it would end a run that has begun.
  std::unique_ptr<Generator> make_generator() {
    if (run_.asked.train.sample_every <= 0) return nullptr;
    int64_t tensor = run_.mesh.size(kTensorAxis);
    if (tensor > 1 && !gathers_to_sample())
      sampling_ranks_ = std::make_unique<MeshRanks>(Mesh{{{kTensorAxis, tensor}}}, ranks_->along(kTensorAxis));
    else if (!leads(ranks_))
      return nullptr;
    const TensorStore* trained = gathers_to_sample() ? nullptr : &session_.store();
    return std::make_unique<Generator>(run_, platform_, backend_, 1, trained, backend_.free_bytes(),
                                       sampling_ranks_.get());
  }
  bool gathers_to_sample() const { return cuts_parameters(session_.store()); }

  int64_t num_ranks() const { return ranks_ ? ranks_->mesh().num_ranks() : 1; }
  Peak peak() const { return peak_of(platform_.target, run_.compile.precision); }
  StepWork step_work() const {
    return {double(session_.tokens_per_step()), flops_per_token(run_.asked.model), peak().flops * double(num_ranks())};
  }

  void start_or_resume() {
    if (!found_) {
      queue_.run([this] { initialise(); });
      initial_.reset();
      // Else the next start would go on with the older run, if this one ends before its first save.
      if (!list_checkpoints(checkpoints_folder(run_.asked.train.out)).empty())
        save_progress(done_, run_, session_.store(), data_);
      start_.lap("weights");
      return;
    }
    queue_.run([this] { session_.initialise_states(); });
    done_ = load_progress(*found_, session_);
    found_->files.clear();  // their space on the disk is not held
    saved_step_ = done_.step;
    observer_.message(fmt::format("resuming after step {} from {}", done_.step, found_->path.string()));
    if (std::string changes = describe_changes(config_of(*found_), run_.settled(), done_.step); !changes.empty())
      observer_.message(changes);
    start_.lap("checkpoint");
  }

  void initialise() {
    if (initial_) return session_.initialise(*initial_);
    FoundCheckpoint model = open_checkpoint(run_.asked.model.from, nullptr);
    load_parameters(model, session_.store());
    session_.initialise_states();
    observer_.message(fmt::format("beginning with the weights of {}", model.path.string()));
  }

  bool is_last() const { return done_.step == run_.asked.train.steps; }
  bool due(int64_t every) const { return every > 0 && done_.step % every == 0; }

  bool needs_outcome() const {
    return is_last() || due(run_.asked.train.eval_every) || due(run_.asked.train.sample_every) ||
           due(run_.asked.train.checkpoint_every);
  }

  // On the steps' thread, before each of them.
  StepNews ask_all(StepNews mine) const {
    mine.stops = stop_();
    return tell_all(ranks_, mine);
  }

  // Where its data fails, all ranks learn so when the steps before have run.
  void submit_step() {
    if (watcher_) watcher_->step_begins(done_.step + 1, {session_, queue_, data_.loader(), platform_});
    auto begin = StepQueue::Clock::now();
    std::vector<Batch> batches;
    std::string failure;
    try {
      for (int64_t i = 0; i < session_.micro_batches(); ++i) batches.push_back(data_.loader().next());
      require_targets(batches, done_.step + 1);
    } catch (const std::exception& error) {
      data_error_ = std::current_exception();
      failure = error.what();
    }
    if (watcher_) watcher_->data_read();
    std::chrono::duration<double, std::milli> wait = StepQueue::Clock::now() - begin;
    double lr = learning_rate(done_.step, run_.asked.optimizer, run_.asked.train.steps);
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
    save();
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
    if (!std::exchange(started_, true)) {
      start_.lap("first step", *queue_.first_end());
      observer_.started(start_.phases());
    }
    bool found_good = reporter_->record(metrics);
    if (found_good && leads(ranks_))  // of those before it none is needed any more
      remove_old_checkpoints(run_.asked.train.out, run_.asked.train.keep_checkpoints, reporter_->known_good().step);
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
    bool evaluates = evaluator_ && (is_last() || due(run_.asked.train.eval_every));
    if (!evaluates) reporter_->show(newest);
    if (is_last() || due(run_.asked.train.checkpoint_every)) save();
    try {
      if (evaluates) {
        reporter_->add_val_loss(newest, evaluate());
        reporter_->show(newest);
      }
      if (due(run_.asked.train.sample_every)) show_sample();
    } catch (...) {
      save();
      throw;
    }
    return true;
  }

  // What a process saved that ended before it had evaluated it.
  void evaluate_before() {
    if (!found_ || !evaluator_) return;
    TrainConfig before = config_of(*found_).train;
    bool due = before.eval_every > 0 && (done_.step == before.steps || done_.step % before.eval_every == 0);
    if (!any_of(ranks_, due && reporter_->lacks_val_loss())) return;
    double loss = evaluate();
    reporter_->add_missing_val_loss(loss);
    observer_.message(fmt::format("validation loss after step {}, which was not evaluated yet: {}", done_.step,
                                  format_number(loss, 4)));
  }

  // A backend's queue is let go with whatever is in it.
  bool can_rescue() const { return ranks_ && !backend_.queue(0) && has_whole_state(session_.store()); }

  // Other ranks are lost. What they would have to give is not needed where this one has all of the state.
  void rescue() {
    bool leads = tokamak::leads(ranks_);
    if (!leads && !ranks_->world().has_lost_leader()) return;  // which saves, or has a reason not to
    if (!can_rescue()) return;
    report(queue_.take_last());
    int64_t step = recorded_step_;
    if (step == 0 || (leads && step == saved_step_)) return;
    RunProgress progress = step == done_.step ? done_ : before_.at(step);
    if (session_.is_torn())
      return observer_.rescue_told(
          fmt::format("step {} had begun to change the parameters when it failed: what came after step {} is lost",
                      step + 1, saved_step_));
    try {
      reporter_->saving();
      auto path = rescue_progress(progress, recent_, run_, session_, backend_, data_, reporter_->known_good(), leads);
      if (!path) return;
      data_.saved(step, progress.samples);
      observer_.rescue_told(fmt::format("saved the state after step {} in {}", step, path->string()));
    } catch (const UserError& error) {  // why ranks are lost is told, too
      observer_.rescue_told(error.what());
    }
  }

  // The validation loss.
  double evaluate() {
    Evaluation evaluation;
    auto losses_of = [&](std::span<const Batch> batches) { return session_.evaluate(batches); };
    queue_.run([&] { evaluation = evaluator_->evaluate(losses_of); });
    summary_.val_loss = evaluation.loss;
    if (evaluation.bits_per_byte > 0) summary_.bits_per_byte = evaluation.bits_per_byte;
    summary_.val_windows = evaluation.windows;
    summary_.all_val_windows = evaluation.all_windows;
    if (!evaluation.unknown.empty() && !std::exchange(told_unknown_, true)) observer_.message(evaluation.unknown);
    return evaluation.loss;
  }

  void show_sample() {
    if (gathers_to_sample())
      queue_.run([&] { copy_parameters(session_.store(), generator_ ? &generator_->weights() : nullptr); });
    if (!generator_) return;
    std::vector<int32_t> start = data_.sample_prompt(), tokens;
    queue_.run([&] {
      generator_->take_weights();
      tokens = generator_->generate(start, run_.asked.train.sample_tokens, {.temperature = 0.8, .top_k = 50},
                                    run_.asked.train.seed);
    });
    observer_.sample(done_.step, visible_text(*data_.tokenizer(), tokens));
  }

  // All steps are finished and recorded.
  void save() {
    if (saved_step_ == done_.step) return;
    if (leads(ranks_)) choices_.save(platform_.tuning, backend_);
    reporter_->saving();
    auto path = save_progress(done_, run_, session_.store(), data_, reporter_->known_good());
    reporter_->saved(done_.step);
    saved_step_ = done_.step;
    data_.saved(done_.step, done_.samples);
    observer_.saved(done_.step, path);
  }

  StartClock start_;
  bool started_ = false;  // and observer_ knows
  TrainObserver& observer_;
  const MeshRanks* ranks_;                // null: one rank
  StepWatcher* watcher_;                  // null: nobody
  std::unique_ptr<RunFolder> folder_;     // of the rank that leads
  std::optional<FoundCheckpoint> found_;  // where it goes on
  ResolvedRun run_;
  Backend& backend_;
  RunData data_;
  std::unique_ptr<InitialValues> initial_;  // while they are needed
  ChoicesFile choices_;
  int64_t free_bytes_ = 0;  // before any rank has taken some
  Platform platform_;
  Session session_;
  std::unique_ptr<MeshRanks> sampling_ranks_;  // that sample together from their parts; null: who leads samples alone
  std::unique_ptr<Generator> generator_;       // null: no samples are wanted, or others sample
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<StepReporter> reporter_;
  std::function<bool()> stop_;             // whether this rank is asked to stop; of any thread
  std::exception_ptr data_error_;          // of this rank
  RunProgress done_;                       // or under way
  std::map<int64_t, RunProgress> before_;  // of steps under way, by the steps done before
  int64_t recorded_step_ = 0;
  std::deque<StepMetrics> recent_;
  int64_t saved_step_ = 0;
  TrainSummary summary_;
  bool told_unknown_ = false;  // why there are no bits per byte
  StepQueue queue_;            // last: its thread uses the others
};

}  // namespace

TrainSummary train(const RunConfig& config, const Platform& platform, Backend& backend, TrainObserver& observer,
                   const std::function<bool()>& stop, const MeshRanks* ranks, StepWatcher* watcher) {
  return Trainer(config, platform, backend, observer, ranks, watcher).run(stop);
}

}  // namespace tokamak
