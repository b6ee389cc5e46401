#include "run/start_run.h"

#include "base/error.h"
#include "base/memory_sharers.h"
#include "base/system.h"
#include "checkpoint/archive.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/find_together.h"
#include "compile/memory_advice.h"
#include "data/data_tokenizer.h"
#include "run/learning_rate.h"
#include "run/progress.h"
#include "run/rank_decisions.h"
#include "run/run_changes.h"
#include "run/shadow.h"

#include <fmt/format.h>

#include <future>

namespace tokamak {
namespace {

constexpr double kSlowStep = 20;    // seconds
constexpr int64_t kLargeVocab = 4;  // times the data's

// A run whose folder is gone goes on from its archive; a new one does not mix with another.
void restore(const TrainConfig& train, bool goes_on, TrainObserver& observer, std::vector<std::string>* warnings) {
  if (train.archive.empty()) return;
  if (goes_on) {
    std::string restored = restore_archived(train.archive, train.out, warnings);
    if (!restored.empty()) observer.message(fmt::format("copied {} back from {}", restored, train.archive));
    return;
  }
  if (!list_checkpoints(checkpoints_folder(train.archive)).empty())
    user_error("[train.archive] expected a folder without checkpoints for a run that begins anew, got {}; name another",
               train.archive);
}

// The rank that leads then puts in order what a killed process left behind.
std::optional<FoundCheckpoint> find_start(const RunConfig& asked, bool goes_on, TrainObserver& observer,
                                          const MeshRanks* ranks, const MemoryStates& memory = {}) {
  std::vector<std::string> warnings;
  std::optional<FoundCheckpoint> found;
  if (leads(ranks)) restore(asked.train, goes_on, observer, &warnings);
  std::optional<FoundCheckpoint> kept = find_kept_state(memory, asked.train.out, &warnings, ranks);
  if (any_of(ranks, goes_on) && !kept) found = find_together(asked.train.out, &warnings, ranks);
  for (const std::string& warning : warnings) observer.message("warning: " + warning);
  if (leads(ranks)) repair_checkpoints(asked.train.out, found, keep_rule(asked.train));
  if (kept) found = std::move(kept);
  require_same(ranks, "checkpoint to go on from", found ? found->path.filename().string() : "none");
  return found;
}

// As the rank that leads would run it. The rates behind the choice of a precision are measured anew at every start, but
// a run must go on as it began.
void resolve_alike(StartedRun& start, const RunConfig& asked, const Platform& platform, const MeshRanks* ranks) {
  start.platform = platform;
  start.platform.target = of_leader(ranks, platform.target);
  RunConfig config = with_data_vocab(asked);
  if (start.found) config = going_on(config, *start.found);
  start.resolved = resolve(of_leader(ranks, config), start.platform.target, start.found ? start.found->state.step : 0);
  require_checkable(start.resolved);
  has_shadow(start.resolved);
}

// Then ranks draw what they have when they know what that is.
bool has_divided_parameters(const MeshConfig& mesh) { return mesh.zero == 3 || mesh.tensor > 1 || mesh.pipe > 1; }

void begin_drawing(StartedRun& start) {
  const RunConfig& asked = start.resolved.asked;
  if (!start.found && asked.model.from.empty() && !has_divided_parameters(asked.mesh))
    start.initial = std::make_unique<InitialValues>(model_parameters(asked.model), asked.train.seed);
}

using OpeningData = std::future<std::unique_ptr<RunData>>;

// A large vocabulary takes as long as it does to compile the step, which can go on meanwhile.
OpeningData begin_opening_data(const StartedRun& start, const MeshRanks* ranks) {
  return std::async(std::launch::async, [&start, records = leads(ranks)] {
    return std::make_unique<RunData>(start.resolved, start.found ? &*start.found : nullptr, records);
  });
}

void await_data(StartedRun& start, OpeningData& opening) {
  start.clock.time("data", [&] { start.data = opening.get(); });
}

// Measured by the rank that leads alone: what is chosen decides the graph, and that must be one for all. The bytes that
// are free before any rank has taken some, as others may share them; here all wait for each other.
int64_t tune_alike(StartedRun& start, Backend& backend, TrainObserver& observer, const MeshRanks* ranks) {
  int64_t free_bytes = backend.free_bytes();
  if (ranks) require_same(ranks, "data", start.data->description());
  if (!leads(ranks)) return await_choices(ranks, start.platform.tuning, backend), free_bytes;
  start.platform = start.choices.tune(start.resolved, start.platform, backend, start.found.has_value(), observer);
  return backend.free_bytes();
}

// The others wait in tune_alike until the rank that leads has compiled its kernels, which is when they are chosen.
void allocate(StartedRun& start, CompiledRun compiled, Backend& backend, const MeshRanks* ranks) {
  start.session = std::make_unique<Session>(std::move(compiled), start.platform, backend, ranks);
  if (ranks && leads(ranks)) give_choices(ranks, start.platform.tuning, backend);
}

// Drawn ones, or those of another model.
void initialise(StartedRun& start, StepQueue& queue, TrainObserver& observer) {
  Session& session = *start.session;
  if (start.initial) return queue.run([&] { session.initialise(*start.initial); });
  if (start.resolved.asked.model.from.empty()) return queue.run([&] { session.initialise_shares(); });
  FoundCheckpoint model = open_checkpoint(start.resolved.asked.model.from, nullptr);
  queue.run([&] {
    load_parameters(model, session.store());
    session.initialise_states();
  });
  observer.message(fmt::format("beginning with the weights of {}", model.path.string()));
}

// Of a warm-up that leaves nothing of the schedule.
std::string warmup_warning(const RunConfig& run) {
  int64_t warmup = run.optimizer.warmup_steps, steps = run.train.steps;
  if (run.optimizer.lr == 0) return "";
  if (warmup >= steps)
    return fmt::format(
        "warning: the warm-up of {} steps (optimizer.warmup_steps) is not shorter than the run of {}: the learning "
        "rate only rises, to {:.2e} of {:.2e}; lower it, or train longer",
        warmup, steps, learning_rate(steps - 1, run.optimizer, steps), run.optimizer.lr);
  int64_t schedule = schedule_steps(run.optimizer, steps);
  if (!has_end(run.optimizer) || warmup < schedule) return "";
  return fmt::format(
      "warning: the warm-up of {} steps (optimizer.warmup_steps) is not shorter than the schedule of {} "
      "(optimizer.schedule_steps): behind it the learning rate falls at once to {:.2e}; change one of them",
      warmup, schedule, run.optimizer.lr * run.optimizer.min_lr_ratio);
}

std::string describe_phase(const ResolvedRun& run, int64_t done) {
  return fmt::format("from step {} on {} tokens a step, in sequences of {} (train.ramp)", done + 1,
                     run.phase.step_tokens, run.phase.sequence);
}

// What is easily asked for by mistake: the default sizes on a small machine, another vocabulary than the data's.
void add_size_notes(const StartedRun& start, std::vector<std::string>& notes) {
  int64_t steps = start.resolved.asked.train.steps, vocab = start.resolved.asked.model.vocab;
  if (double seconds = start.session->run().seconds; seconds > kSlowStep)
    notes.push_back(fmt::format(
        "warning: a step of this model takes about {} here, all {} of them {}; --model.preset=small is a small model",
        format_duration(seconds), steps, format_duration(seconds * double(steps))));
  if (int64_t needed = start.data->needed_vocab(); needed > 0 && vocab > kLargeVocab * needed)
    notes.push_back(
        fmt::format("warning: model.vocab = {}, but the data has only {} tokens: the others cost memory and time and "
                    "are never learned; --model.vocab=0 takes the data's",
                    vocab, needed));
}

// A device's plan takes none of the host's memory; ranks of one machine share that. All ranks call it.
int64_t host_bytes_left(int64_t free_bytes, int64_t planned_bytes, Backend& backend, const MeshRanks* ranks) {
  bool has_device = backend.queue(0);
  std::string mine = memory_place();
  std::vector<std::string> places = ranks ? ranks->world().exchange(mine) : std::vector{mine};
  if (has_device) return available_memory() / std::ranges::count(places, mine);
  return free_bytes > 0 ? std::max<int64_t>(free_bytes - planned_bytes, 1) : 0;
}

// Behind the search for a checkpoint.
void prepare_session(StartedRun& start, const RunConfig& asked, const Platform& platform, Backend& backend,
                     TrainObserver& observer, const MeshRanks* ranks) {
  resolve_alike(start, asked, platform, ranks);
  begin_drawing(start);
  OpeningData opening = begin_opening_data(start, ranks);
  if (ranks) await_data(start, opening);  // before any of them measures: it must be the same for all
  int64_t free_bytes = start.clock.time("tuning", [&] { return tune_alike(start, backend, observer, ranks); });
  start.clock.time("compiling", [&] {
    CompiledRun compiled = compile_to_fit(start.resolved, start.platform, free_bytes, ranks);
    allocate(start, std::move(compiled), backend, ranks);
    start.host_bytes_left = host_bytes_left(free_bytes, start.session->compiled().total_bytes(), backend, ranks);
  });
  if (!ranks) await_data(start, opening);
}

}  // namespace

StartedRun start_run(const RunConfig& asked, const Platform& platform, Backend& backend, TrainObserver& observer,
                     const MeshRanks* ranks, const MemoryStates& memory) {
  StartedRun start(asked);
  start.memory = memory;
  if (leads(ranks)) start.folder = std::make_unique<RunFolder>(asked.train.out);
  start.found = find_start(asked, asked.train.resume, observer, ranks, memory);
  prepare_session(start, asked, platform, backend, observer, ranks);
  return start;
}

StartedRun start_phase(const RunConfig& asked, const Platform& platform, Backend& backend, TrainObserver& observer,
                       const MeshRanks* ranks, std::unique_ptr<RunFolder> folder, const MemoryStates& memory) {
  StartedRun start(asked);
  start.memory = memory;
  start.is_first = false;
  start.folder = std::move(folder);
  start.found = find_start(asked, true, observer, ranks);
  prepare_session(start, asked, platform, backend, observer, ranks);
  return start;
}

std::vector<std::string> start_notes(const RunConfig& asked, const StartedRun& start) {
  std::vector<std::string> notes;
  auto add = [&](const std::string& note) {
    if (!note.empty()) notes.push_back(note);
  };
  const ResolvedRun& run = start.resolved;
  if (asked.compile.precision == Precision::kTf32 && run.compile.precision != Precision::kTf32)
    add("compile.precision = tf32 means fp32 here: this device has no units for TF32");
  for (const std::string& note : start.data->notes()) add(note);
  for (const std::string& group : describe_groups(run.asked)) add(group);
  add(warmup_warning(run.asked));
  if (!run.asked.train.ramp.empty()) add(describe_phase(run, start.found ? start.found->state.step : 0));
  add(reference_warning(start.session->reference_nodes()));
  // The pass does what it can; what cannot be recomputed away is said rather than left to be noticed.
  add(budget_warning(start.session->compiled().intermediate_bytes(), run.compile.memory_budget_gib));
  add_size_notes(start, notes);
  return notes;
}

RunProgress load_values(StartedRun& start, StepQueue& queue, TrainObserver& observer) {
  Session& session = *start.session;
  if (!start.found) {
    initialise(start, queue, observer);
    start.initial.reset();
    // Else the next start would go on with the older run, if this one ends before its first save.
    if (!list_checkpoints(checkpoints_folder(start.resolved.asked.train.out)).empty())
      save_progress({}, start.resolved, session.store(), *start.data);
    start.clock.lap("weights");
    return {};
  }
  FoundCheckpoint& found = *start.found;
  queue.run([&] { session.initialise_states(); });
  RunProgress done = load_progress(found, session);
  found.files.clear();  // their space on the disk is not held
  if (!start.is_first) {
    if (!start.resolved.asked.train.ramp.empty()) observer.message(describe_phase(start.resolved, done.step));
    start.clock.lap("checkpoint");
    return done;
  }
  observer.message(fmt::format("resuming after step {} from {}", done.step, found.path.string()));
  std::string changes = describe_changes(config_of(found), start.resolved.settled(), done.step);
  if (!changes.empty()) observer.message(changes);
  start.clock.lap("checkpoint");
  return done;
}

}  // namespace tokamak
