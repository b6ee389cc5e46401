// `tokamak train`: the training loop with its output on the terminal.
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "base/signals.h"
#include "base/system.h"
#include "cli/commands.h"
#include "cli/profile_output.h"
#include "cli/ranks.h"
#include "cli/streams.h"
#include "config/config.h"
#include "data/data_path.h"
#include "data/data_tokenizer.h"
#include "profile/run_profiler.h"
#include "train/check_run.h"
#include "train/progress.h"
#include "train/trainer.h"

namespace tokamak {
namespace {

constexpr int64_t kProfileWarmup = 2;  // steps, for when it begins with the first one

struct TrainProfile {
  int64_t at = 0;
  int64_t steps = ProfileOptions().steps;
  ProfileOutput output;
};

void visit(FieldList& v, TrainProfile& c) {
  v("at", c.at, "step with which it begins; 0: no profile", at_least(0));
  v("steps", c.steps, "steps that are profiled; as many with nobody observing come before and behind them",
    between(1, 1000));
  visit(v, c.output);
}

struct TrainArguments {
  std::string config;
  RunConfig run;
  GivenOptions given;
  TrainProfile profile;
  bool verbose = false;
};

void visit(FieldList& v, TrainArguments& c) {
  v.config_file("run", c.config, "run file (TOML, or a run's config.json); or the folder of a run, which goes on");
  v.config(c.run);
  v.section("profile", c.profile, "where the time of some of its steps goes, as `tokamak profile` tells it");
  v("verbose", c.verbose, "also tell where the time of the start goes");
}

int terminal_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// Lines for logs; on a terminal a bar under them as well.
class Console : public TrainObserver {
 public:
  Console(const StartClock& before, bool verbose) : before_(before), verbose_(verbose) {}

  void message(const std::string& text) override { line(printable(text)); }

  void started(const std::vector<StartPhase>& phases) override {
    if (!verbose_) return;
    std::vector<StartPhase> all = before_.phases();
    all.insert(all.end(), phases.begin(), phases.end());
    line(format_start(all));
  }

  void step(const StepMetrics& metrics, int64_t total_steps, double eta_seconds) override {
    line(format_step_line(metrics, total_steps, eta_seconds));
  }

  void progress(int64_t step, int64_t total_steps, double eta_seconds) override {
    if (!terminal_) return;
    write((bar_ ? "\r" : "") + format_progress_bar(step, total_steps, eta_seconds, terminal_width() - 1));
    bar_ = true;
  }

  void sample(int64_t step, const std::string& text) override {
    line(fmt::format("--- sample after step {} ---\n{}\n---", step, text));
  }

  void saved(int64_t, const std::filesystem::path& path) override { line(fmt::format("saved {}", path.string())); }

  void line(const std::string& text) { write((std::exchange(bar_, false) ? "\r\x1b[K" : "") + text + "\n"); }

 private:
  // What cannot be written ends no training.
  static void write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() || std::fflush(stdout) != 0)
      drop_output_without_reader();
  }

  const StartClock& before_;  // what came before train()
  bool verbose_;
  bool terminal_ = takes_escape_codes(STDOUT_FILENO);
  bool bar_ = false;
};

void print_end(Console& console, const TrainSummary& summary, const RunConfig& run) {
  if (summary.stopped) {
    console.line(fmt::format("stopped after step {} of {}; the same command goes on from there (train.out = {})",
                             summary.steps, summary.total_steps, run.train.out));
    return;
  }
  if (summary.data_wait > kShownDataWait)
    console.line(
        fmt::format("{:.1f}% of the time went into waiting for data;\n"
                    "more --data.workers, or data prepared with `tokamak prepare`, may help",
                    std::min(100 * summary.data_wait, 100.0)));
  if (!summary.val_loss) return;
  std::string bits = summary.bits_per_byte ? fmt::format(", {:.4f} bits per byte", *summary.bits_per_byte) : "";
  std::string part = summary.val_windows == summary.all_val_windows
                         ? ""
                         : fmt::format("\n(of the first {} of {} windows; `tokamak eval` takes all)",
                                       summary.val_windows, summary.all_val_windows);
  console.line(fmt::format("validation loss {:.4f}{}{}", *summary.val_loss, bits, part));
}

// Begins where the process began.
StartClock clock_of_process() {
  std::chrono::duration<double> since(process_seconds());
  StartClock clock(StartClock::Clock::now() - std::chrono::duration_cast<StartClock::Clock::duration>(since));
  clock.lap("program");
  return clock;
}

// The vocabulary is the data's unless one is given; a preset's is GPT-2's, for data that does not tell its own.
RunConfig configure(const TrainArguments& arguments) {
  RunConfig config = arguments.run;
  if (!arguments.given.has("model.vocab"))
    config.model.vocab = find_data_vocab(config.data).value_or(config.model.vocab);
  check_run(config);
  return config;
}

// Of the ranks that do not lead: what they would say is said by the one that does.
class Silence : public TrainObserver {
 public:
  void message(const std::string&) override {}
  void step(const StepMetrics&, int64_t, double) override {}
  void sample(int64_t, const std::string&) override {}
  void saved(int64_t, const std::filesystem::path&) override {}
};

// Before the work, as far as that tells it.
void check_profile(const TrainArguments& arguments, const RunConfig& config) {
  const TrainProfile& profile = arguments.profile;
  const std::vector<std::string>& keys = arguments.given.keys;
  auto given = std::find_if(keys.begin(), keys.end(), [](const auto& key) { return key.starts_with("profile."); });
  if (profile.at == 0 && given != keys.end())
    user_error("[--profile.at] expected the step that the profile begins with, got none beside --{}", *given);
  if (profile.at == 0) return;
  check_files(profile.output);
  int64_t needed = kProfileWarmup + (is_gpu_device(config) ? 4 : 3) * profile.steps;
  if (profile.at + needed - 1 > config.train.steps)
    user_error(
        "[--profile.at] expected a run of at least {} steps, for a profile of {} from step {} on and those that it is "
        "compared with, got train.steps = {}; lower --profile.at or --profile.steps",
        profile.at + needed - 1, profile.steps, profile.at, config.train.steps);
}

// The profile that a rank is asked for. What goes wrong with its files ends no training.
class AttachedProfile {
 public:
  AttachedProfile(const TrainArguments& arguments, const RankWork& rank, Console& console)
      : profile_(arguments.profile),
        watcher_(profile_.at,
                 {.steps = {.steps = profile_.steps, .warmup = kProfileWarmup},
                  .is_gpu = rank.machine.is_gpu,
                  .traces = !profile_.output.trace.empty()},
                 *rank.machine.backend, rank.ranks, [&](ProfileReport& report, int64_t first) {
                   told_ = true;
                   std::string command = typed_line("train", arguments.given.arguments);
                   console.line(fmt::format("--- profile of steps {} to {} ---", first, first + profile_.steps - 1));
                   try {
                     console.line(write_profile(profile_.output, rank.machine, command, report) + "---");
                   } catch (const UserError& error) {
                     console.line(fmt::format("warning: {}", error.what()));
                   }
                 }) {}

  StepWatcher* watcher() { return profile_.at > 0 ? &watcher_ : nullptr; }

  /// Empty when it was told, or none was asked for.
  std::string missing() const {
    return told_ || profile_.at == 0 ? ""
                                     : fmt::format(
                                           "no profile: not all of its steps, from {} on, were taken in this "
                                           "start of the run",
                                           profile_.at);
  }

 private:
  const TrainProfile& profile_;
  bool told_ = false;
  RunProfiler watcher_;
};

int run_train(const TrainArguments& arguments) {
  StartClock start = clock_of_process();
  StopSignal stop(has_first_rank() ? "finishing this step; again to quit now\n" : "");
  std::signal(SIGPIPE, SIG_IGN);
  Console console(start, arguments.verbose);
  for (const DataPath& path : all_data_paths(arguments.run.data)) require_exists(path.path);
  bool stopped = false;
  RunConfig config = configure(arguments);
  check_profile(arguments, config);
  run_on_ranks(config, [&](const RankWork& rank) {
    const Machine& machine = rank.machine;
    AttachedProfile profile(arguments, rank, console);
    auto requested = [&] { return stop.requested(); };
    if (!leads(rank.ranks)) {
      Silence silence;
      train(rank.config, machine.platform, *machine.backend, silence, requested, rank.ranks, profile.watcher());
      return;
    }
    start.lap("device");
    console.line(describe(machine));
    if (rank.ranks) console.line(fmt::format("mesh: {}", to_string(rank.ranks->mesh())));
    TrainSummary summary =
        train(rank.config, machine.platform, *machine.backend, console, requested, rank.ranks, profile.watcher());

    print_end(console, summary, rank.config);
    if (std::string missing = profile.missing(); !missing.empty()) console.line(missing);
    stopped = summary.stopped;
  });
  return stopped ? stopped_status() : 0;
}

}  // namespace

Command train_command() {
  return make_command<TrainArguments>(
      "train", "train a model on prepared data; goes on by itself where an earlier run stopped",
      "Ctrl-C, SIGTERM or a closed terminal finishes the step, saves and ends with status 130 (128 + the signal); the "
      "same command then continues.",
      run_train);
}

}  // namespace tokamak
