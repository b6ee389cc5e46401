// `tokamak ladder`: what each optimisation buys on this machine.
#include <fmt/chrono.h>
#include <fmt/core.h>

#include <filesystem>

#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/idle_notes.h"
#include "cli/machine.h"
#include "cli/ranks.h"
#include "cli/streams.h"
#include "compile/step_compiler.h"
#include "config/cluster.h"
#include "config/config.h"
#include "config/gpus.h"
#include "data/data_tokenizer.h"
#include "exec/measure_links.h"
#include "ladder/data_times.h"
#include "ladder/mesh_table.h"
#include "ladder/predicted_ladder.h"
#include "model/model.h"
#include "pages/ladder_html.h"
#include "run/initial_model.h"
#include "run/progress.h"
#include "run/rank_decisions.h"
#include "run/run_data.h"

namespace tokamak {
namespace {

// What a GPU is given when it fits: beyond it a step of GPT-2 only gets longer.
constexpr int64_t kLargestBatch = 64;

constexpr Rung kTop[] = {{"as configured", [](RunConfig&, int64_t) {}}};

std::span<const Rung> rungs_for(bool top, bool is_gpu, const Target& target) {
  if (top) return kTop;
  return is_gpu ? gpu_rungs(target.fp8_flops > 0) : cpu_rungs();
}

struct LadderArguments {
  std::string config;
  RunConfig run;
  int64_t steps = LadderOptions().steps;
  int64_t warmup = 0;
  int64_t load = -1;
  bool top = false, own = false;
  int64_t epoch = 0;
  std::string cluster;
  std::string json;
  std::string out;
  GivenOptions given;
};

void visit(FieldList& v, LadderArguments& c) {
  v.config_file("run", c.config, "run file (TOML, or a run's config.json), or the folder of a run");
  v.config(c.run);
  v("steps", c.steps, "timed steps a rung", at_least(1));
  v("warmup", c.warmup, "steps before them; 0: 1 on the CPU, 4 on a GPU", at_least(0));
  v("load", c.load, "seconds under load before the top is timed once more; 0: not, -1: 10 on one GPU, else 0",
    at_least(-1));
  v("top", c.top, "of one rank measure only the run as it is configured, not the rungs below it");
  v("own", c.own, "on several ranks measure only the mesh that is asked for, after one rank as with --top");
  v("epoch", c.epoch, "tokens of an epoch, whose hours are told; 0: those of data.path, where it is given",
    at_least(0));
  v("cluster", c.cluster,
    "predict the rungs on a GPU of this cluster (plan --clusters), or of a file; measure nothing");
  v("json", c.json, "file for the results; empty: none");
  v("out", c.out, "folder for ladder.json and ladder.html, which has a chart; empty: none");
}

// Until the machine is known, each rank has the default.
void complete(LadderArguments& arguments) {
  RunConfig& run = arguments.run;
  if (!arguments.given.has("train.batch")) run.train.batch *= mesh_of_run(run).num_ranks();
}

// Under load the top of one device would be compared with meshes that begin cool.
LadderOptions options_for(const LadderArguments& arguments, const RankContext& rank) {
  bool is_gpu = rank.machine.is_gpu;
  int64_t warmup = arguments.warmup > 0 ? arguments.warmup : is_gpu ? 4 : 1;
  int64_t load = arguments.load >= 0 ? arguments.load : is_gpu && !rank.ranks ? 10 : 0;
  return {.steps = arguments.steps, .warmup = warmup, .device_clock = is_gpu, .load_seconds = double(load)};
}

// train.batch as given, else the largest that fits the first rung; of one rank.
int64_t batch_for(const LadderArguments& arguments, const RunConfig& config, const Machine& machine,
                  const Rung& first) {
  if (arguments.given.has("train.batch")) return config.train.batch;
  return choose_batch(config, machine.platform, first, machine.backend->free_bytes(),
                      machine.is_gpu ? kLargestBatch : config.train.batch);
}

void write_reports(const LadderArguments& arguments, const LadderReport& report) {
  if (!arguments.json.empty()) write_output_file(arguments.json, ladder_json(report));
  if (arguments.out.empty()) return;
  std::filesystem::path folder = arguments.out;
  write_file_atomic(folder / "ladder.json", ladder_json(report));
  write_file_atomic(folder / "ladder.html", ladder_html(report));
  fmt::print("\nladder.json and ladder.html are in {}\n", printable(folder.string()));
}

void print_line(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// Of a mesh that one rank does not have; what is said of the compiler is for some rung.
void print_notes(const LadderArguments& arguments, const RankContext& rank) {
  const Machine& machine = rank.machine;
  if (rank.ranks) return;
  for (const std::string& note :
       idle_notes(rank.config, arguments.given, machine.platform.target, machine.is_gpu, NotesFor::kStep))
    if (note.starts_with("mesh.")) fmt::print("{}\n", note);
}

// 0: not known. Data that cannot be read is no reason not to measure.
int64_t epoch_tokens(const LadderArguments& arguments, const RunConfig& config) {
  if (arguments.epoch > 0 || !arguments.given.has("data.path")) return arguments.epoch;
  try {
    return RunData::check(config, nullptr) * config.model.context;
  } catch (const UserError& error) {
    print_to_stderr(fmt::format("hours of an epoch are left out: {}\n", printable(error.what())));
    return 0;
  }
}

void print_model(const RunConfig& config, std::string_view more) {
  fmt::print("model: {} parameters, {} x {} tokens a step{}\n", format_count(double(count_parameters(config.model))),
             config.train.batch, config.model.context, more);
}

// The rungs of one rank, which is this one.
void climb_alone(const LadderArguments& arguments, const RankContext& rank, LadderReport& report,
                 const std::function<void()>& not_yet) {
  const Machine& machine = rank.machine;
  RunConfig& config = report.config;
  std::span<const Rung> rungs = rungs_for(arguments.top || arguments.own, machine.is_gpu, machine.platform.target);
  config.train.batch = batch_for(arguments, config, machine, rungs[0]);
  fmt::print("{}\n", describe(machine));
  print_model(config, rank.ranks ? " of one rank" : "");
  print_notes(arguments, rank);
  fmt::print("\n");
  print_line(format_ladder_header());
  report.target = machine.platform.target;
  report.versions = machine.versions;
  report.rungs = run_ladder(config, machine.platform, *machine.backend, rungs, options_for(arguments, rank),
                            [&](const RungResult& rung) {
                              print_line(format_rung(rung));
                              not_yet();
                            });
  fmt::print("\n{}\n{}", format_ladder_legend(report.rungs), format_data_times(report.rungs, report.epoch_tokens));
}

// As rank 0 has measured them.
Platform with_measured_links(const RankContext& rank) {
  Platform platform = rank.machine.platform;
  Communicator& world = rank.ranks->world();
  LinkSeconds seconds = measure_links(*rank.machine.backend, world);
  platform.target = of_leader(rank.ranks, with_links(platform.target, world.size(), seconds));
  return platform;
}

std::string describe_links(const Target& target) {
  double bandwidth = target.link_bandwidth / 1e9;
  return fmt::format("links as measured: all_reduce {:.3g} GB/s, all_gather {:.3g} GB/s, {:.0f} us a collective",
                     bandwidth, bandwidth * target.gather_share, target.link_seconds * 1e6);
}

// The rungs of all ranks together.
void climb_on_mesh(const LadderArguments& arguments, const RankContext& rank, LadderReport& report) {
  const RungResult* found = best_rung(report.rungs);
  RungResult best = found ? *found : RungResult();  // of the rank that leads
  const MeshConfig& asked = rank.config.mesh;
  std::vector<MeshRung> rungs = arguments.own ? std::vector{mesh_rung(asked)} : mesh_rungs(asked);
  Platform platform = with_measured_links(rank);
  if (leads(rank.ranks)) {
    report.target = platform.target;
    print_line(fmt::format("\n{} ranks, {}\n{}", rank.ranks->mesh().num_ranks(), describe_links(platform.target),
                           format_mesh_header()));
  }
  MeshLadderOptions options{.ladder = options_for(arguments, rank), .ranks_of_process = rank.in_process};
  report.meshes = run_mesh_ladder(best, platform, *rank.machine.backend, *rank.ranks, rungs, options,
                                  [](const MeshResult& result) { print_line(format_mesh_result(result)); });
  if (leads(rank.ranks)) fmt::print("\n{}", format_mesh_legend(best));
}

// A mistake shows now, not after all that measuring.
void check_reports(const LadderArguments& arguments) {
  if (!arguments.out.empty()) make_folder(arguments.out);
  if (!arguments.json.empty()) check_output_file(arguments.json);
}

// For a GPU that is not there.
int predict_on_cluster(const LadderArguments& arguments, RunConfig config) {
  if (!cuda::is_built()) user_error("[cluster] expected a program built with CUDA for --cluster; leave it out");
  if (config.device != "auto" && !config.device.starts_with("cuda"))
    user_error("[device] expected cuda, as --cluster has GPUs, got {}; leave one out", config.device);
  if (!arguments.json.empty() || !arguments.out.empty())
    user_error("[cluster] expected neither --json nor --out, which hold what was measured; leave them out");
  if (mesh_of_run(config).num_ranks() > 1)
    user_error("[cluster] expected one rank for a predicted ladder, got a mesh; `tokamak plan` compares meshes");
  config.device = "cuda";
  GpuConfig gpu = read_cluster(arguments.cluster).gpu;
  Platform platform = cuda::nominal_platform(gpu);
  std::span<const Rung> rungs = rungs_for(arguments.top || arguments.own, true, platform.target);
  int64_t bytes = int64_t(gpu.memory_bytes.value);
  if (!arguments.given.has("train.batch"))
    config.train.batch = choose_batch(config, platform, rungs[0], bytes, kLargestBatch);
  fmt::print("{}, as described: predicted, not measured\n", gpu.name);
  print_model(config, "");
  print_line("\n" + format_predicted_header());
  std::vector<RungResult> found = predict_ladder(
      config, platform, bytes, rungs, [](const RungResult& rung) { print_line(format_predicted_rung(rung)); });
  fmt::print("\n{}", format_data_times(found, epoch_tokens(arguments, config)));
  return 0;
}

int run_ladder_command(const LadderArguments& arguments) {
  RunConfig config = with_data_vocab(with_initial_model(arguments.run, arguments.given));
  if (!arguments.cluster.empty()) return predict_on_cluster(arguments, config);
  int64_t ranks = mesh_of_run(config).num_ranks();
  RunConfig alone = ranks > 1 ? for_one_rank(config, ranks) : config;
  check_reports(arguments);
  run_on_ranks(config, [&](const RankContext& rank) {
    LadderReport report;
    report.config = alone;
    if (leads(rank.ranks)) report.epoch_tokens = epoch_tokens(arguments, config);
    report.command = typed_line("ladder", arguments.given.arguments);
    report.date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
    lead_alone(rank.ranks, [&](const auto& not_yet) { climb_alone(arguments, rank, report, not_yet); });
    if (rank.ranks) climb_on_mesh(arguments, rank, report);
    if (leads(rank.ranks)) write_reports(arguments, report);
  });
  return 0;
}

}  // namespace

Command ladder_command() {
  return make_command<LadderArguments>(
      "ladder", "the speed ladder on this machine: every optimisation, predicted and measured",
      "Random tokens stand for data. A rung that makes the step slower on this machine is shown and left out of the "
      "rungs after it. Without train.batch, the batch on a GPU is the largest power of two up to 64 with which the "
      "first rung fits; on the CPU it is the default one, or less where that does not fit.\n\n"
      "On several ranks (--mesh.data=4, or under torchrun, mpirun or srun) one of them climbs alone; then its best run "
      "is divided over all in every way that the model allows, with as many sequences a rank. As in training, "
      "train.batch is what all ranks take together.\n\n"
      "    tokamak ladder --model.preset=gpt2-124m --data.path=data --out=out/ladder\n"
      "    tokamak ladder --cluster=colab-a100 --model.preset=gpt2-124m --train.batch=16 --epoch=9B",
      run_ladder_command);
}

}  // namespace tokamak
