// `tokamak profile`: where the time of a run's steps goes.
#include <fmt/chrono.h>
#include <fmt/core.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/machine.h"
#include "cli/ranks.h"
#include "config/config.h"
#include "data/data_tokenizer.h"
#include "profile/page.h"
#include "profile/profile_run.h"
#include "profile/trace.h"

namespace tokamak {
namespace {

struct ProfileArguments {
  std::string config;
  RunConfig run;
  int64_t steps = ProfileOptions().steps;
  int64_t warmup = 0;
  int64_t kernels = 30;
  std::string json;
  std::string trace;
  std::string page;
  GivenOptions given;
};

void visit(FieldList& v, ProfileArguments& c) {
  v.config_file("run", c.config, "run file (TOML, or a run's config.json), or the folder of a run");
  v.config(c.run);
  v("steps", c.steps, "steps that are profiled", between(1, 10000));
  v("warmup", c.warmup, "steps before them; 0: 2 on the CPU, 5 on a GPU", at_least(0));
  v("kernels", c.kernels, "lines of the table of kernels", at_least(1));
  v("trace", c.trace, "file for a trace that ui.perfetto.dev opens, .json.gz or .json; empty: none");
  v("page", c.page, "HTML file with charts: time, roofline, memory, timeline, predictions; empty: none");
  v("json", c.json, "file for all numbers; empty: none");
}

ProfileRunOptions options_for(const ProfileArguments& arguments, bool is_gpu) {
  int64_t warmup = arguments.warmup > 0 ? arguments.warmup : is_gpu ? 5 : 2;
  return {.steps = {.steps = arguments.steps, .warmup = warmup},
          .is_gpu = is_gpu,
          .traces = !arguments.trace.empty(),
          .reads_data = arguments.given.has("data.path")};
}

void show(const ProfileArguments& arguments, const Machine& machine, ProfileReport& report) {
  report.versions = machine.versions;
  report.command = typed_line("profile", arguments.given.arguments);
  report.date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  fmt::print("{}\n{}", describe(machine), format_profile(report, size_t(arguments.kernels)));
  if (!arguments.json.empty()) write_file_atomic(arguments.json, profile_json(report));
  if (!arguments.page.empty()) write_file_atomic(arguments.page, profile_page(report));
  if (!arguments.trace.empty()) write_trace(arguments.trace, format_trace(report.trace, report.command));
}

// A mistake shows now.
void check_files(const ProfileArguments& arguments) {
  if (!arguments.trace.empty()) check_trace_file(arguments.trace);
  for (const std::string& file : {arguments.json, arguments.page, arguments.trace})
    if (!file.empty()) AtomicFile{file};
}

int run_profile(const ProfileArguments& arguments) {
  RunConfig config = with_data_vocab(arguments.run);
  check_files(arguments);
  run_on_ranks(config, [&](const RankWork& rank) {
    const Machine& machine = rank.machine;
    ProfileReport report = profile_run(rank.config, machine.platform, *machine.backend, rank.ranks,
                                       options_for(arguments, machine.is_gpu));
    if (leads(rank.ranks)) show(arguments, machine, report);
  });
  return 0;
}

}  // namespace

Command profile_command() {
  return make_command<ProfileArguments>(
      "profile", "where the time of a run's steps goes: every millisecond, and every kernel beside its roofline",
      "Takes some steps as training would, on the data of data.path where that is given, else on random tokens, and "
      "keeps nothing of "
      "them:\n\n"
      "  tokamak profile --model.preset=gpt2-124m --train.batch=1\n\n"
      "docs/profile.md says what the tables mean.",
      run_profile);
}

}  // namespace tokamak
