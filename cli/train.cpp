// `tokamak train`: the training loop with its output on the terminal.
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "base/signals.h"
#include "base/system.h"
#include "base/thread_stacks.h"
#include "cli/agent.h"
#include "cli/commands.h"
#include "cli/idle_notes.h"
#include "cli/machine.h"
#include "cli/memory_folder.h"
#include "cli/ranks.h"
#include "cli/streams.h"
#include "cli/supervisor.h"
#include "cli/train_profile.h"
#include "config/config.h"
#include "data/data_path.h"
#include "data/data_tokenizer.h"
#include "passes/step_mesh.h"
#include "run/check_run.h"
#include "run/initial_model.h"
#include "run/progress.h"
#include "run/run_outline.h"
#include "run/trainer.h"

namespace tokamak {
namespace {

struct TrainArguments {
  std::string config;
  RunConfig run;
  GivenOptions given;
  TrainProfile profile;
  AgentOptions agents;
  bool verbose = false, dry_run = false;
  int64_t restarts = 0;
  int64_t memory_every = 0;
  std::string memory_folder = "/dev/shm";
};

void visit(FieldList& v, TrainArguments& c) {
  v.config_file("run", c.config, "run file (TOML, or a run's config.json); or the folder of a run, which goes on");
  v.config(c.run);
  v.section("profile", c.profile, "where the time of some of its steps goes, as `tokamak profile` tells it");
  v.section("agents", c.agents, "ranks on several machines, each of which starts its own and starts them again");
  v("dry_run", c.dry_run, "say what would be trained, how long that takes, and draw the learning rate; train nothing");
  v("verbose", c.verbose, "also tell where the time of the start goes");
  v("restarts", c.restarts,
    "how often in an hour the run starts again by itself when it dies or loses a rank; 0: never", at_least(0));
  v("memory_every", c.memory_every, "with --restarts: steps between states that are kept in memory; 0: none",
    at_least(0));
  v("memory_folder", c.memory_folder, "with --memory_every: where, a folder of a file system in memory");
}

int terminal_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// Lines for logs; on a terminal a bar under them as well.
class Console : public TrainObserver {
 public:
  Console(const StartClock& before, bool verbose) : before_(before), verbose_(verbose) {}
  /// What may_rescue() and lost() call.
  void set_ends(std::function<void()> may_rescue, std::function<void(const std::string&)> lost) {
    may_rescue_ = std::move(may_rescue);
    lost_ = std::move(lost);
  }

  void message(const std::string& text) override { line(text); }

  void started(const std::vector<StartPhase>& phases) override {
    if (!verbose_) return;
    std::vector<StartPhase> all = before_.phases();
    all.insert(all.end(), phases.begin(), phases.end());
    line(format_start(all));
  }

  void step(const StepMetrics& metrics, int64_t total_steps, double eta_seconds) override {
    size_t width = terminal_ ? size_t(std::max(terminal_width(), 80)) : kAnyWidth;
    line(format_step_line(metrics, total_steps, eta_seconds, width));
  }

  void progress(int64_t step, int64_t total_steps, double eta_seconds) override {
    if (!terminal_) return;
    write((bar_ ? "\r" : "") + format_progress_bar(step, total_steps, eta_seconds, terminal_width() - 1));
    bar_ = true;
  }

  void sample(int64_t step, const std::string& text) override {
    line(fmt::format("--- sample after step {} ---\n{}\n---", step, text));
  }

  void may_rescue() override { may_rescue_(); }

  void lost(const std::string& why) override { lost_(why); }

  void saved(int64_t, const std::filesystem::path& path) override { line(fmt::format("saved {}", path.string())); }

  void line(const std::string& text) { write((std::exchange(bar_, false) ? "\r\x1b[K" : "") + printable(text) + "\n"); }

 private:
  // What cannot be written ends no training.
  static void write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() || std::fflush(stdout) != 0)
      drop_output_without_reader();
  }

  const StartClock& before_;  // what came before train()
  std::function<void()> may_rescue_ = [] {};
  std::function<void(const std::string&)> lost_ = [](const std::string&) {};
  bool verbose_;
  bool terminal_ = takes_escape_codes(STDOUT_FILENO);
  bool bar_ = false;
};

void print_end(Console& console, const TrainSummary& summary, const RunConfig& run) {
  if (!summary.goodput.empty()) console.line(summary.goodput);
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
RunConfig configure(const TrainArguments& arguments, AnotherTrains trains = AnotherTrains::kIsRefused) {
  RunConfig config = with_initial_model(arguments.run, arguments.given);
  if (config.model.from.empty() && !arguments.given.has("model.vocab"))
    config.model.vocab = find_data_vocab(config.data).value_or(config.model.vocab);
  return checked_run(config, trains);
}

// Of the ranks that do not lead: what they would say is said by the one that does.
class Silence : public TrainObserver {
 public:
  explicit Silence(const RankContext& rank) : rank_(rank) {}
  void message(const std::string&) override {}
  void step(const StepMetrics&, int64_t, double) override {}
  void sample(int64_t, const std::string&) override {}
  void saved(int64_t, const std::filesystem::path&) override {}
  void may_rescue() override { rank_.outlive_leader(); }
  void lost(const std::string& why) override { rank_.end_lost(why); }
  void rescue_told(const std::string& text) override { print_to_stderr(rank_prefix() + printable(text) + "\n"); }

 private:
  const RankContext& rank_;
};

void validate(const TrainArguments& arguments) {
  validate(arguments.agents);
  if (arguments.restarts > 0 && !arguments.run.train.resume)
    user_error(
        "[restarts] expected train.resume for a run that starts again, got false; remove what is in {}, or name "
        "another folder with --train.out",
        arguments.run.train.out);
  if (arguments.memory_every > 0 && arguments.restarts == 0)
    user_error("[memory_every] expected --restarts with it, as states in memory are for these, got none; add it");
}

// Under torchrun, mpirun or srun these start ranks again.
bool supervises(const TrainArguments& arguments) {
  return arguments.restarts > 0 && !is_supervised() && !is_one_of_several();
}

bool is_agent(const TrainArguments& arguments) { return arguments.agents.machines > 1 && !is_supervised(); }

// On this process alone, whatever the mesh is.
int run_dry(const TrainArguments& arguments) {
  RunConfig config = configure(arguments, AnotherTrains::kIsAllowed);
  config.mesh.data = mesh_of_run(config).size(kDataAxis);  // also tells of a mesh that does not fit its ranks
  Machine machine = open_machine(config);
  fmt::print("{}\n", printable(describe(machine)));
  for (const std::string& note :
       idle_notes(config, arguments.given, machine.platform.target, machine.is_gpu, NotesFor::kTraining))
    fmt::print("{}\n", printable(note));
  fmt::print("{}", printable(describe_run(config, machine.platform)));
  return 0;
}

int run_supervised(const TrainArguments& arguments) {
  std::unique_ptr<MemoryFolder> memory;
  std::vector<std::string> variables;
  if (arguments.memory_every > 0) {
    memory = std::make_unique<MemoryFolder>(arguments.memory_folder);
    variables.push_back(memory->variable());
  }
  if (!is_agent(arguments)) return supervise(arguments.run.train.out, arguments.restarts, variables);
  RunConfig config = configure(arguments, AnotherTrains::kIsAllowed);
  return run_agent(config, arguments.agents, arguments.restarts, variables);
}

// No memory outlives ranks that nobody here supervises.
void tell_idle_memory(const TrainArguments& arguments) {
  if (arguments.memory_every == 0 || is_supervised() || !is_one_of_several() || !has_first_rank()) return;
  print_to_stderr(
      "--memory_every does nothing here, where a launcher has started the ranks and not --restarts: a run that starts "
      "again goes on from its newest good checkpoint (train.checkpoint_every)\n");
}

int run_train(const TrainArguments& arguments) {
  if (arguments.dry_run) return run_dry(arguments);
  tell_idle_memory(arguments);
  if (is_agent(arguments) || supervises(arguments)) return run_supervised(arguments);
  StartClock start = clock_of_process();
  std::jthread begins = begin_alone(arguments.run.mesh, arguments.run.device);
  StopSignal stop(has_first_rank() ? "finishing this step; again to quit now\n" : "");
  std::signal(SIGPIPE, SIG_IGN);
  tell_stacks_on_request();
  Console console(start, arguments.verbose);
  for (const DataPath& path : all_data_paths(arguments.run.data)) require_exists(path.path);
  bool stopped = false;
  RunConfig config = configure(arguments);
  check_profile(arguments.profile, arguments.given, config);
  auto train_rank = [&](const RankContext& rank) {
    const Machine& machine = rank.machine;
    const MemoryStates memory{
        .folder = given_memory_folder(), .every = arguments.memory_every, .open_links = rank.open_links};
    AttachedProfile profile(arguments.profile, arguments.given, rank, [&](const auto& text) { console.line(text); });
    auto requested = [&] { return stop.requested(); };
    if (!leads(rank.ranks)) {
      Silence silence(rank);
      train(rank.config, machine.platform, *machine.backend, silence, requested, rank.ranks, profile.watcher(), memory);
      return;
    }
    start.lap("device");
    console.set_ends(rank.outlive_leader, rank.end_lost);
    console.line(describe(machine));
    if (rank.ranks) console.line(describe_mesh(resolve(rank.config, machine.platform.target)));
    for (const std::string& note :
         idle_notes(rank.config, arguments.given, machine.platform.target, machine.is_gpu, NotesFor::kTraining))
      console.line(note);
    TrainSummary summary = train(rank.config, machine.platform, *machine.backend, console, requested, rank.ranks,
                                 profile.watcher(), memory);
    print_end(console, summary, rank.config);
    profile.end();
    stopped = summary.stopped;
  };
  run_on_ranks(config, train_rank, Compiles::kStepEarly);
  remove_left_memory_folder();
  return stopped ? stopped_status() : 0;
}

}  // namespace

Command train_command() {
  return make_command<TrainArguments>("train",
                                      "train a model on prepared data; goes on by itself where an earlier run stopped",
                                      "Ctrl-C, SIGTERM or a closed terminal finishes the step (or gives it up between "
                                      "two kernels, where it takes longer "
                                      "than ten seconds on one rank), saves and ends with status 130 (128 + the "
                                      "signal); the same command then continues. "
                                      "Ctrl-C again ends at once, as does another signal a second later.",
                                      run_train);
}

}  // namespace tokamak
