// `tokamak ladder`: what each optimisation buys on this machine.
#include <fmt/core.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/machine.h"
#include "data/data_vocab.h"
#include "model/gpt.h"
#include "train/ladder.h"
#include "train/progress.h"

namespace tokamak {
namespace {

struct LadderArguments {
  std::string config;
  RunConfig run;
  int64_t steps = LadderOptions().steps;
  int64_t warmup = LadderOptions().warmup;
  std::string json;
};

void visit(FieldList& v, LadderArguments& c) {
  v.config_file("run", c.config, "run file (TOML)");
  v.config(c.run);
  v("steps", c.steps, "timed steps a rung", at_least(1));
  v("warmup", c.warmup, "steps before them", at_least(1));
  v("json", c.json, "file for the results; empty: none");
}

int run_ladder_command(const LadderArguments& arguments) {
  RunConfig config = with_data_vocab(arguments.run);
  Machine machine = open_machine(config);
  fmt::print("{}: {} threads, measured {:.0f} GFLOP/s fp32, {:.0f} bf16, {:.1f} GB/s\n", machine.target.name,
             machine.target.units, machine.target.f32_flops * 1e-9, machine.target.bf16_flops * 1e-9,
             machine.target.memory_bandwidth * 1e-9);
  fmt::print("model: {} parameters, {} x {} tokens a step\n\n{}\n",
             format_count(double(count_parameters(config.model))), config.train.batch, config.model.context,
             format_ladder_header());
  auto results = run_ladder(config, machine.target, *machine.backend, {arguments.steps, arguments.warmup},
                            [](const RungResult& rung) {
                              fmt::print("{}\n", format_rung(rung));
                              std::fflush(stdout);
                            });
  if (!arguments.json.empty()) write_file_atomic(arguments.json, ladder_json(config, machine.target, results));
  return 0;
}

}  // namespace

Command ladder_command() {
  return make_command<LadderArguments>(
      "ladder", "the speed ladder on this machine: every optimisation, predicted and measured",
      "Random tokens stand for data. A rung that makes the step slower on this machine is shown and left out of the "
      "rungs after it.",
      run_ladder_command);
}

}  // namespace tokamak
