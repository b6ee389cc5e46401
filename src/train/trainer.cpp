#include "train/trainer.h"

#include "base/error.h"
#include "base/file.h"
#include "base/system.h"
#include "config/config.h"
#include "config/json.h"
#include "data/data_tokenizer.h"
#include "exec/task_queue.h"
#include "ops/flop_rate.h"
#include "train/checkpoint.h"
#include "train/evaluator.h"
#include "train/generator.h"
#include "train/progress.h"
#include "train/run_data.h"
#include "train/schedule.h"
#include "train/session.h"
#include "train/tune.h"

#include <chrono>
#include <cmath>
#include <deque>

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::optional<FoundCheckpoint> find_start(const RunConfig& config, TrainObserver& observer) {
  if (!config.train.resume) return std::nullopt;
  std::vector<std::string> warnings;
  std::optional<FoundCheckpoint> found = find_checkpoint(config.train.out, &warnings);
  for (const std::string& warning : warnings) observer.message("warning: " + warning);
  return found;
}

// The rates behind the choice of a precision are measured anew at every start, but a run must go on as it began.
RunConfig settle(const RunConfig& asked, const Target& target, const std::optional<FoundCheckpoint>& found) {
  RunConfig config = with_data_vocab(asked);
  if (found && found->state.seed != config.train.seed)
    user_error(
        "[train] expected train.seed = {}, with which the run in {} began (data order and dropout follow from it), got "
        "{}; use that seed, or another --train.out for a new run",
        found->state.seed, config.train.out, config.train.seed);
  if (found && config.compile.precision == "auto")
    config.compile.precision = run_config_from_json(found->state.config_json, found->path.string()).compile.precision;
  return resolve(config, target);
}

// Steps that a queue holds beyond the one that runs: enough that the device never waits for the host.
constexpr size_t kStepsAhead = 1;

// Gradients that overflow even when scaled down this far are not numbers to begin with.
constexpr double kLowestLossScale = 1e-4;

class Trainer {
 public:
  Trainer(const RunConfig& config, const Platform& platform, Backend& backend, TrainObserver& observer)
      : observer_(observer), found_(find_start(config, observer)), config_(settle(config, platform.target, found_)),
        backend_(backend), data_(config_, found_ ? &*found_ : nullptr), initial_(begin_initial_values()),
        platform_(start_.time("tuning", [&] { return tune_here(platform); })),
        session_(start_.time("compiling", [&] { return Session(config_, platform_, backend, backend.free_bytes()); })) {
    if (config.compile.precision == "tf32" && config_.compile.precision != "tf32")
      observer_.message("compile.precision = tf32 means fp32 here: this device has no units for TF32");
    queue_.submit([this] { backend_.use_in_this_thread(); });
    check_budget();
    make_folder(config_.train.out);
    if (config_.train.eval_every > 0) make_evaluator();
    start_or_resume();
    write_file_atomic(std::filesystem::path(config_.train.out) / "config.json", to_json(config_));
    metrics_ = std::make_unique<MetricsWriter>(std::filesystem::path(config_.train.out) / "metrics.jsonl",
                                               step_ > 0 ? std::optional(step_) : std::nullopt);
    if (step_ < config_.train.steps) data_.started(step_, consumed_, metrics_->reached());
    start_.lap("files");
  }

  TrainSummary run(const std::function<bool()>& stop) {
    int64_t total = config_.train.steps;
    bool stopped = false, trained = step_ < total;
    if (!trained)
      observer_.message(
          fmt::format("nothing to do: {} of {} steps are done; raise --train.steps to go on", step_, total));
    while (step_ < total && !stopped) {
      submit_step();
      if (!config_.compile.async) finish_all();
      stopped = stop();
      bool last = stopped || step_ == total;
      last || due(config_.train.eval_every) || due(config_.train.sample_every) || due(config_.train.checkpoint_every)
          ? synchronise(last && !stopped)
          : report_finished();
    }
    if (saved_step_ != step_ && step_ > 0) save();
    if (trained) data_.ended(step_, consumed_);
    double waited = total_ms_ > 0 ? waited_ms_ / total_ms_ : 0;
    return {step_, total, stopped && step_ < total, val_loss_, bits_per_byte_, waited};
  }

 private:
  // The pass does what it can; what cannot be recomputed away is said rather than left to be noticed.
  void check_budget() {
    double gib = double(session_.compiled().largest().plan.arena_bytes) / double(int64_t(1) << 30);
    if (double budget = config_.compile.memory_budget_gib; budget > 0 && gib > 1.02 * budget)
      observer_.message(
          fmt::format("warning: compile.memory_budget_gib = {:.2f} cannot be met: the step's intermediate values take "
                      "{:.2f} GiB with "
                      "everything recomputed that can be; lower train.batch or model.context",
                      budget, gib));
  }

  void make_evaluator() {
    if (std::shared_ptr<const Corpus> corpus = data_.open_validation())
      evaluator_ = std::make_unique<Evaluator>(corpus, data_.tokenizer(), config_, config_.train.eval_batches);
    else
      observer_.message(
          fmt::format("no validation: it needs data.val_path, or data prepared with a validation part of more than {} "
                      "tokens (model.context)",
                      config_.model.context));
  }

  std::unique_ptr<InitialValues> begin_initial_values() {
    start_.lap("data");
    if (found_) return nullptr;
    return std::make_unique<InitialValues>(gpt_parameters(config_.model), config_.train.seed);
  }

  std::filesystem::path choices_file() const { return std::filesystem::path(config_.train.out) / "choices.json"; }

  // A run that goes on chooses as it did, whatever became of the cache.
  Platform tune_here(const Platform& platform) {
    std::error_code error;
    if (found_ && backend_.tuning() && std::filesystem::exists(choices_file(), error))
      choices_ = read_file(choices_file());
    if (!choices_.empty() && !adopt_choices(choices_, platform.tuning, backend_))
      observer_.message(
          fmt::format("warning: {} holds what was chosen for another kind of GPU or other libraries; they "
                      "choose anew here, and the last bits of the run may differ from now on",
                      choices_file().string()));
    return tune(config_, platform, backend_, Measure::kChoices, choices_);
  }

  // Beside the checkpoints, which are what a run goes on from.
  void save_choices() {
    std::string choices = run_choices(platform_.tuning, backend_);
    if (choices == choices_) return;
    write_file_atomic(choices_file(), choices);
    choices_ = choices;
  }

  void start_or_resume() {
    if (!found_) {
      compute([this] { session_.initialise(*initial_); });
      initial_.reset();
      start_.lap("weights");
      return;
    }
    compute([this] { session_.initialise_states(); });
    load_parameters(found_->path, session_.store(), session_.parameters());
    load_optimizer(found_->path, session_.store(), session_.parameters());
    step_ = saved_step_ = found_->state.step;
    tokens_ = found_->state.tokens;
    consumed_ = found_->state.data_position;
    observer_.message(fmt::format("resuming after step {} from {}", step_, found_->path.string()));
    start_.lap("checkpoint");
  }

  // Whatever computes runs on the queue's thread: OpenMP keeps a team for every thread that ever ran a loop, and with
  // more threads than cores it puts them to sleep between kernels (a step of a small model took ten times as long).
  void compute(std::function<void()> task) { queue_.run(std::move(task)); }

  bool due(int64_t every) const { return every > 0 && step_ % every == 0; }

  // Hands one step to the queue; its metrics appear in finished_ when it has run.
  void submit_step() {
    auto begin = Clock::now();
    auto batches = std::make_shared<std::vector<Batch>>();
    for (int64_t i = 0; i < session_.micro_batches(); ++i) batches->push_back(data_.loader().next());
    double wait = milliseconds_since(begin);
    int64_t step = step_++;
    double lr = learning_rate(step, config_.optimizer, config_.train.steps);
    consumed_ = data_.loader().position();
    tokens_ += session_.tokens_per_step();
    queue_.submit([this, batches, step, lr, wait] {
      auto start = Clock::now();
      pending_.push_back(
          {session_.submit_step(*batches, step, lr), start, {.step = step + 1, .lr = lr, .data_wait_ms = wait}});
      finish_steps(first_end_ ? kStepsAhead : 0);  // what the first step tells is not held back by the second
    });
  }

  // On the queue's thread: waits until at most `ahead` steps are under way, and takes in what is ready.
  void finish_steps(size_t ahead) {
    while (pending_.size() > ahead || (!pending_.empty() && pending_.front().step.ready())) {
      Pending& oldest = pending_.front();
      StepResult result = oldest.step.wait();
      auto now = Clock::now();
      StepMetrics metrics = oldest.metrics;
      metrics.loss = result.loss;
      metrics.grad_norm = result.grad_norm;
      metrics.loss_scale = result.loss_scale;
      metrics.skipped = result.skipped;
      metrics.ms = std::chrono::duration<double, std::milli>(now - std::max(oldest.begin, last_end_)).count();
      last_end_ = now;
      pending_.pop_front();
      std::lock_guard lock(mutex_);
      if (!first_end_) first_end_ = now;
      finished_.push_back(metrics);
    }
  }

  void finish_all() {
    compute([this] { finish_steps(0); });
  }

  std::vector<StepMetrics> take_finished() {
    std::lock_guard lock(mutex_);
    return std::exchange(finished_, {});
  }

  // What has run so far, without waiting.
  void report_finished() {
    queue_.check();
    for (StepMetrics& metrics : take_finished()) report(metrics);
  }

  // Once, when the first step of this start has run.
  void report_start() {
    {
      std::lock_guard lock(mutex_);
      start_.lap("first step", *first_end_);
    }
    observer_.started(start_.phases());
    started_ = true;
  }

  void report(StepMetrics& metrics) {
    if (!started_) report_start();
    metrics.tokens_per_second = double(session_.tokens_per_step()) / metrics.ms * 1e3;
    metrics.gflops = session_.compiled().flops() / metrics.ms * 1e-6;
    double peak = matmul_rate(platform_.target, session_.config().compile.precision);
    metrics.percent_of_peak = 100 * metrics.gflops * 1e9 / peak;
    metrics.wall_seconds = wall_seconds();
    if (average_ms_ > 0) {  // not the first step, which waits for files to be opened
      total_ms_ += metrics.ms;
      waited_ms_ += metrics.data_wait_ms;
    }
    average_ms_ = average_ms_ == 0 ? metrics.ms : 0.9 * average_ms_ + 0.1 * metrics.ms;
    metrics_->write(metrics);
    if (std::string warning = overflow_warning(metrics, config_.optimizer.clip); !warning.empty())
      observer_.message(warning);
    bool shown = metrics.val_loss || metrics.step % std::max<int64_t>(config_.train.log_every, 1) == 0;
    if (shown)
      observer_.step(metrics, config_.train.steps, double(config_.train.steps - metrics.step) * average_ms_ * 1e-3);
    require_progress(metrics);
  }

  // A step that loss scaling skipped changed nothing, and may have lost its loss to the overflow as well.
  void require_progress(const StepMetrics& metrics) const {
    bool skipped = metrics.loss_scale && !std::isfinite(metrics.grad_norm);
    if (skipped && *metrics.loss_scale < kLowestLossScale)
      user_error(
          "[train] expected finite gradients of step {}, got an overflow even at a loss scale of {:.1e}: training has "
          "diverged or fp16 cannot hold its values. The checkpoints before it are kept in {}; continue from there with "
          "--compile.precision=bf16, a lower --optimizer.lr or more --optimizer.warmup_steps",
          metrics.step, *metrics.loss_scale, config_.train.out);
    if (!std::isfinite(metrics.loss) && !skipped)
      user_error(
          "[train] the loss of step {} is {}: training has diverged. The checkpoints before it are kept in {}; "
          "continue from there with a lower --optimizer.lr or more --optimizer.warmup_steps",
          metrics.step, metrics.loss, config_.train.out);
  }

  // Waits for the steps under way, then does what needs their outcome.
  void synchronise(bool finished) {
    finish_all();
    std::vector<StepMetrics> metrics = take_finished();
    for (size_t i = 0; i + 1 < metrics.size(); ++i) report(metrics[i]);
    if (evaluator_ && (finished || due(config_.train.eval_every))) {
      Evaluation evaluation;
      compute([&] { evaluation = evaluator_->evaluate([&](const Batch& batch) { return session_.evaluate(batch); }); });
      val_loss_ = evaluation.loss;
      if (evaluation.bits_per_byte > 0) bits_per_byte_ = evaluation.bits_per_byte;
      if (!evaluation.unknown.empty() && !std::exchange(told_unknown_, true)) observer_.message(evaluation.unknown);
      if (!metrics.empty()) metrics.back().val_loss = evaluation.loss;
    }
    if (!metrics.empty()) report(metrics.back());
    if (due(config_.train.sample_every)) show_sample();
    if (due(config_.train.checkpoint_every)) save();
  }

  void show_sample() {
    if (!generator_) generator_ = std::make_unique<Generator>(config_, platform_, backend_, session_.store());
    int32_t start = data_.tokenizer()->end_of_text();
    std::vector<int32_t> tokens;
    compute([&] {
      tokens = generator_->generate({&start, 1}, config_.train.sample_tokens, {.temperature = 0.8, .top_k = 50},
                                    config_.train.seed);
    });
    observer_.sample(step_, data_.tokenizer()->decode(tokens));
  }

  void save() {
    save_choices();
    CheckpointState state{
        .step = step_, .tokens = tokens_, .seed = config_.train.seed, .config_json = to_json(config_)};
    data_.describe(state, consumed_);
    auto path = save_checkpoint(config_.train.out, state, session_.store(), session_.parameters(),
                                config_.train.keep_checkpoints);
    saved_step_ = step_;
    data_.saved(step_, consumed_);
    observer_.saved(step_, path);
  }

  StartClock start_;
  bool started_ = false;  // and observer_ knows
  TrainObserver& observer_;
  std::optional<FoundCheckpoint> found_;  // where it goes on
  RunConfig config_;                      // vocabulary and precision settled
  Backend& backend_;
  RunData data_;
  std::unique_ptr<InitialValues> initial_;  // while they are needed
  std::string choices_;                     // as in choices_file()
  Platform platform_;
  Session session_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Generator> generator_;
  std::unique_ptr<MetricsWriter> metrics_;
  int64_t step_ = 0;  // submitted
  int64_t saved_step_ = 0;
  int64_t tokens_ = 0;
  int64_t consumed_ = 0;  // samples taken from the loader
  double average_ms_ = 0;
  double total_ms_ = 0, waited_ms_ = 0;  // of all steps but the first, and waiting for data in them
  std::optional<double> val_loss_, bits_per_byte_;
  bool told_unknown_ = false;  // why there are no bits per byte
  struct Pending {
    PendingStep step;
    Clock::time_point begin;
    StepMetrics metrics;  // what is known before the step has run
  };
  std::deque<Pending> pending_;  // of the queue's thread
  Clock::time_point last_end_;
  std::optional<Clock::time_point> first_end_;  // of the first step; written with the lock, by the queue's thread
  std::mutex mutex_;
  std::vector<StepMetrics> finished_;
  TaskQueue queue_;  // last: its thread uses the others
};

}  // namespace

TrainSummary train(const RunConfig& config, const Platform& platform, Backend& backend, TrainObserver& observer,
                   const std::function<bool()>& stop) {
  return Trainer(config, platform, backend, observer).run(stop);
}

}  // namespace tokamak
