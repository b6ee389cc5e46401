// `tokamak profile`: where the time of a run's steps goes.
#include <fmt/core.h>

#include <filesystem>

#include "base/printable.h"
#include "cli/commands.h"
#include "cli/idle_notes.h"
#include "cli/profile_output.h"
#include "cli/ranks.h"
#include "cli/streams.h"
#include "config/config.h"
#include "data/data_tokenizer.h"
#include "profile/profile_run.h"
#include "run/initial_model.h"

namespace tokamak {
namespace {

struct ProfileArguments {
  std::string config;
  RunConfig run;
  int64_t steps = ProfileOptions().steps;
  int64_t warmup = 0;
  ProfileOutput output;
  GivenOptions given;
};

void visit(FieldList& v, ProfileArguments& c) {
  v.config_file("run", c.config,
                "run file (TOML, or a run's config.json); or the folder of a run, whose next steps it takes");
  v.config(c.run);
  v("steps", c.steps, "steps that are profiled", between(1, 1000));
  v("warmup", c.warmup, "steps before them; 0: 2 on the CPU, 5 on a GPU", at_least(0));
  visit(v, c.output);
}

ProfileRunOptions options_for(const ProfileArguments& arguments, bool is_gpu) {
  int64_t warmup = arguments.warmup > 0 ? arguments.warmup : is_gpu ? 5 : 2;
  return {.steps = {.steps = arguments.steps, .warmup = warmup},
          .is_gpu = is_gpu,
          .traces = !arguments.output.trace.empty(),
          .reads_data = arguments.given.has("data.path")};
}

// Of the run whose folder was named.
std::optional<FoundCheckpoint> find_start(const ProfileArguments& arguments) {
  if (!std::filesystem::is_directory(arguments.config)) return std::nullopt;
  std::vector<std::string> warnings;
  std::optional<FoundCheckpoint> found = find_checkpoint(arguments.run.train.out, &warnings);
  for (const std::string& warning : warnings) print_warning(warning);
  return found;
}

int run_profile(const ProfileArguments& arguments) {
  RunConfig config = with_data_vocab(with_initial_model(arguments.run, arguments.given));
  check_files(arguments.output);
  std::optional<FoundCheckpoint> found = find_start(arguments);
  run_on_ranks(config, [&](const RankContext& rank) {
    const Machine& machine = rank.machine;
    ProfileReport report = profile_run(rank.config, machine.platform, *machine.backend, rank.ranks,
                                       options_for(arguments, machine.is_gpu), found ? &*found : nullptr);
    if (!leads(rank.ranks)) return;
    fmt::print("{}\n", describe(machine));
    for (const std::string& note :
         idle_notes(rank.config, arguments.given, machine.platform.target, machine.is_gpu, NotesFor::kStep))
      fmt::print("{}\n", printable(note));
    if (found) fmt::print("from step {} on: {}\n", found->state.step + 1, printable(found->path.string()));
    fmt::print("{}", printable(write_profile(arguments.output, machine,
                                             typed_line("profile", arguments.given.arguments), report)));
  });
  return 0;
}

}  // namespace

Command profile_command() {
  return make_command<ProfileArguments>(
      "profile", "where the time of a run's steps goes: every millisecond, and every kernel beside its roofline",
      "Takes some steps as training would, and keeps nothing of them: of a run's folder those behind its newest "
      "checkpoint; else the first ones, on the data of data.path where that is given, or on random tokens:\n\n"
      "  tokamak profile --model.preset=gpt2-124m --train.batch=1\n\n"
      "`tokamak train --profile.at=STEP` profiles a run while it trains. docs/profile.md says what the tables mean.",
      run_profile);
}

}  // namespace tokamak
