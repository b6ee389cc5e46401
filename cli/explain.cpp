// `tokamak explain`: what the compiler makes of a run, and how long it should take, before anything is allocated.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "advise/advice.h"
#include "advise/estimate.h"
#include "advise/links.h"
#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/idle_notes.h"
#include "cli/machine.h"
#include "compile/float8_table.h"
#include "compile/format_pipeline.h"
#include "compile/memory_advice.h"
#include "compile/step_compiler.h"
#include "config/cluster.h"
#include "config/config.h"
#include "data/data_tokenizer.h"
#include "graph/text.h"
#include "model/model.h"
#include "model/utilization.h"
#include "pages/timeline_html.h"
#include "plan/print_plan.h"
#include "plan/units.h"
#include "run/initial_model.h"
#include "run/random_batch.h"
#include "run/session.h"
#include "tune/tune.h"

namespace tokamak {

namespace {

struct ExplainOptions {
  std::string config;
  bool graph = false;
  bool plan = false;
  bool nominal = false;
  std::string cluster;
  bool measure = false;
  int64_t kernels = 40;
  int64_t source = -1;
  std::string timeline;
  RunConfig run;
  GivenOptions given;
};

void visit(FieldList& v, ExplainOptions& c) {
  v.config_file("config", c.config, "run file (TOML, or a run's config.json), or the folder of a run");
  v("graph", c.graph, "print the graphs, as written and as compiled");
  v("plan", c.plan, "print every launch with the place of its operands in memory");
  v("nominal", c.nominal,
    "predict for a typical machine instead of measuring this one: two cores, or an H200 with --device=cuda");
  v("cluster", c.cluster,
    "predict for the GPUs and links of a cluster, as `plan --cluster` does: a name that `plan --clusters` lists, or a "
    "TOML file like those; empty: for this machine");
  v("measure", c.measure, "run the step kernel by kernel and show what each took");
  v("kernels", c.kernels, "lines of each table of kernels", at_least(1));
  v("source", c.source, "on a GPU, print the generated code of the kernel with this number in the plan; -1: none",
    at_least(-1));
  v("timeline", c.timeline, "HTML file for the predicted timeline of a rank's step; empty: none");
  v.config(c.run);
}

void print_model(const RunConfig& config) {
  const ModelConfig& m = config.model;
  fmt::print("model      {} parameters: {} layers, {} heads, width {}, context {}, vocabulary {}\n",
             format_count(double(count_parameters(m))), m.layers, m.heads, m.width, m.context, m.vocab);
}

void print_groups(const RunConfig& config) {
  for (const std::string& group : describe_groups(config)) fmt::print("rates      {}\n", printable(group));
}

void print_mesh(const ResolvedRun& run) {
  const Mesh& mesh = run.mesh;
  if (mesh.num_ranks() == 1) return;
  std::string axes;
  for (const MeshAxis& axis : mesh.axes)
    axes += fmt::format("{}{} {}", axes.empty() ? "" : " x ", axis.name, axis.size);
  fmt::print("mesh       {} ranks: {}; zero {}; what follows is for one of them\n", mesh.num_ranks(), axes,
             run.asked.mesh.zero);
}

void print_target(const Target& target, const ResolvedRun& run) {
  Precision asked = run.asked.compile.precision, resolved = run.compile.precision;
  fmt::print("target     {}, units {}: fp32 {}, bf16 {}, memory {}, pointwise {}\n", target.name, target.units,
             format_count(target.f32_flops, "FLOP/s"), format_count(target.bf16_flops, "FLOP/s"),
             format_count(target.memory_bandwidth, "B/s"), format_count(target.pointwise_flops, "/s"));
  double gain = target.bf16_flops / target.f32_flops;
  fmt::print("precision  {}{}; bf16 matrix products run at {:.2f}x the rate of fp32 here{}\n", precision_name(resolved),
             asked == Precision::kAuto ? " (auto)" : "", gain,
             gain < 1 && resolved == Precision::kBf16 ? ": fp32 would be faster" : "");
  if (asked == Precision::kTf32 && resolved != Precision::kTf32)
    fmt::print("           tf32 was asked for and means fp32 here: this target has no units for it\n");
}

std::string list_changes(const PassReport& report) {
  constexpr size_t kShown = 8;
  auto changes = report.op_changes;
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.second) > std::abs(b.second); });
  std::string list;
  for (size_t i = 0; i < changes.size() && i < kShown; ++i)
    list += fmt::format("{}{} {:+}", i ? ", " : "", changes[i].first, changes[i].second);
  if (changes.size() > kShown) list += fmt::format(", and {} more", changes.size() - kShown);
  return list;
}

void print_passes(std::string_view title, const std::vector<PassReport>& reports) {
  if (reports.empty()) return;
  fmt::print("\npasses over the {}\n", title);
  size_t longest = 0;
  for (const PassReport& report : reports) longest = std::max(longest, report.name.size());
  for (const PassReport& report : reports) {
    std::string effect = report.skipped ? "off" : report.changed ? list_changes(report) : "nothing to do";
    if (effect.empty()) effect = "changed, with the same ops";
    fmt::print("  {:<{}}{:>8.1f} ms  {}\n", report.name, longest, report.milliseconds, effect);
  }
}

void print_source(const Plan& plan, int64_t number) {
  for (const Launch& launch : plan.launches) {
    if (launch.node != number) continue;
    const Node& node = plan.graph.nodes()[size_t(number)];
    std::string text = cuda::generated_source(node);
    fmt::print("\nsource of {} {}\n{}", number, kernel_label(node), text.empty() ? "none is generated\n" : text);
  }
}

void print_program(const CompiledGraph& program, const ExplainOptions& options, std::span<const double> measured) {
  std::string title = program.name();
  std::replace(title.begin(), title.end(), '_', '-');
  print_passes(title, program.reports);
  if (options.graph)
    fmt::print("\n{} as written\n{}\n{} as compiled\n{}", title, print(program.before), title,
               print(program.plan.graph));
  if (options.plan) fmt::print("\n{}", print_plan(program.plan));
  if (options.source >= 0) print_source(program.plan, options.source);
  fmt::print("\nkernels of the {}\n{}", title, format_kernels(program.plan, size_t(options.kernels), measured));
  if (std::string collectives = format_collectives(program.plan); !collectives.empty())
    fmt::print("\ncollectives of the {}, for one rank\n{}", title, collectives);
}

void print_summary(const CompiledStep& step, const Target& target) {
  if (step.programs.size() > 1) fmt::print("\nschedule   {}\n", print_runs(step));
  const ResolvedRun& run = step.resolved;
  int64_t micro_batches = run.micro_batches, ranks = run.mesh.num_ranks();
  auto tokens = double(run.asked.step_tokens());
  Peak peak = peak_of(target, run.compile.precision);
  Utilization used = utilization(flops_per_token(run.asked.model), tokens / step.seconds(), peak.flops * double(ranks));
  fmt::print(
      "\noptimizer step: {} tokens in {} micro-batch{}, {} {}, predicted {:.1f} ms = {:.0f} tokens/s, {:.0f}% MFU of "
      "{}; memory {}\n",
      int64_t(tokens), micro_batches, micro_batches == 1 ? "" : "es", format_count(step.flops(), "FLOP"),
      ranks > 1 ? "a rank" : "computed", step.seconds() * 1e3, tokens / step.seconds(), 100 * used.full,
      peak.of_ranks(ranks), format_bytes(double(step.total_bytes())));
}

bool is_on_gpu(const ExplainOptions& options, const Machine& machine) {
  return options.nominal ? options.run.device.starts_with("cuda") : machine.is_gpu;
}

void print_notes(const ExplainOptions& options, const Machine& machine) {
  for (const std::string& note :
       idle_notes(options.run, options.given, machine.platform.target, is_on_gpu(options, machine), NotesFor::kStep))
    fmt::print("note       {}\n", note);
}

// What a rank can have of the device, where that is known. On the CPU all ranks share the memory.
std::optional<int64_t> available_bytes(const ExplainOptions& options, const Machine& machine, const ResolvedRun& run) {
  if (!options.cluster.empty()) return int64_t(usable_bytes(read_cluster(options.cluster), layout_of(run.asked).mesh));
  int64_t bytes = options.nominal ? nominal_bytes(run.asked) : machine.backend->free_bytes();
  if (bytes <= 0) return std::nullopt;
  if (!is_on_gpu(options, machine)) return bytes / run.mesh.num_ranks();
  ClusterConfig cluster;
  cluster.gpu.memory_bytes.value = double(bytes);
  return int64_t(usable_bytes(cluster, layout_of(run.asked).mesh));
}

void print_fit(const CompiledStep& fullest, const ExplainOptions& options, const Machine& machine) {
  std::optional<int64_t> available = available_bytes(options, machine, fullest.resolved);
  std::string note = available ? too_large_note(fullest, machine.platform, *available) : "";
  if (!note.empty()) fmt::print("{}\n", note);
}

// Tiles and waves are those of a GPU.
void print_advice(const RunConfig& config, const Platform& platform) {
  if (!platform.target.chunked_classifier) return;
  std::string advice = format_advice(advise(config, layout_of(config), platform));
  if (!advice.empty()) fmt::print("\n{}", advice);
}

// Seconds of each program's kernels one by one, in their own order on real intermediate values; the mean of a few runs.
std::vector<std::vector<double>> measure_kernels(const CompiledStep& step, const Machine& machine) {
  constexpr int kWarmup = 3, kRuns = 5;
  Session session(step.resolved, machine.platform, *machine.backend, machine.backend->free_bytes());
  session.initialise();
  std::vector<Batch> batches;
  for (int64_t i = 0; i < session.micro_batches(); ++i) batches.push_back(random_batch(step.resolved, uint64_t(i)));
  for (int i = 0; i < kWarmup; ++i) session.run_step(batches, i, step.resolved.asked.optimizer.lr);
  std::vector<std::vector<double>> seconds(step.programs.size());
  for (size_t p = 0; p < seconds.size(); ++p) {
    for (int i = 0; i < kRuns; ++i) session.program(p).run_timed(seconds[p]);
    for (double& sum : seconds[p]) sum /= kRuns;
  }
  return seconds;
}

// Stages and schedule; with --graph or --plan also the programs of all stages.
void explain_pipeline(const ResolvedRun& run, const ExplainOptions& options, const Machine& machine) {
  const Platform& platform = machine.platform;
  Float8Table float8;
  CompiledPipeline pipeline = compile_pipeline(run, platform, float8.observer(context_of(run, platform)));
  print_model(run.asked);
  print_mesh(run);
  print_groups(run.asked);
  print_target(platform.target, run);
  print_notes(options, machine);
  fmt::print("{}\n{}", float8.text(), format_pipeline(pipeline));
  print_fit(*std::ranges::max_element(pipeline.stages, {}, &CompiledStep::total_bytes), options, machine);
  print_advice(run.asked, platform);
  for (size_t stage = 0; stage < pipeline.stages.size() && (options.graph || options.plan); ++stage) {
    fmt::print("\nstage {}: {}\n", stage, print_runs(pipeline.stages[stage]));
    for (const CompiledGraph& program : pipeline.stages[stage].programs) print_program(program, options, {});
  }
  if (options.timeline.empty()) return;
  write_output_file(options.timeline, timeline_html(pipeline, platform.target));
  fmt::print("the timeline is in {}\n", printable(options.timeline));
}

// A cluster is planned for without a machine.
ExplainOptions for_cluster(ExplainOptions options) {
  if (options.cluster.empty()) return options;
  if (!cuda::is_built()) user_error("[cluster] expected a program built with CUDA for --cluster; leave it out");
  if (options.run.device != "auto" && !options.run.device.starts_with("cuda"))
    user_error("[device] expected cuda, as --cluster has GPUs, got {}; leave one out", options.run.device);
  if (options.measure) user_error("[explain] expected --measure or --cluster, got both");
  options.nominal = true;
  options.run.device = "cuda";
  return options;
}

Platform described_platform(const ExplainOptions& options, const RunConfig& config) {
  if (options.cluster.empty()) return nominal_machine(config);
  ClusterConfig cluster = read_cluster(options.cluster);
  require_gpus(cluster, step_mesh(config.mesh).num_ranks());
  return with_links(cuda::nominal_platform(cluster.gpu), cluster, config.mesh);
}

int run_explain(const ExplainOptions& asked) {
  ExplainOptions options = for_cluster(asked);
  RunConfig config = with_data_vocab(with_initial_model(options.run, options.given));
  if (config.mesh.pipe > 1 && (options.measure || options.source >= 0))
    user_error("[explain] expected --measure and --source without a pipeline, got mesh.pipe = {}", config.mesh.pipe);
  Machine machine;
  if (options.nominal)
    machine.platform = described_platform(options, config);
  else
    machine = open_machine(config);
  if (options.measure && options.nominal) user_error("[explain] expected --measure or --nominal, got both");
  if (options.source >= 0 && !(options.nominal ? config.device.starts_with("cuda") : machine.is_gpu))
    user_error("[explain] expected --source for a GPU, got it for a CPU; add --device=cuda");
  ResolvedRun run = resolve(config, machine.platform.target);
  if (options.measure) machine.platform = tune(run, machine.platform, *machine.backend);
  if (run.stages() > 1) {
    explain_pipeline(run, options, machine);
    return 0;
  }
  Float8Table float8;
  CompiledStep step = compile_step(run, machine.platform, float8.observer(context_of(run, machine.platform)));
  std::vector<std::vector<double>> measured(step.programs.size());
  if (options.measure) measured = measure_kernels(step, machine);
  print_model(config);
  print_mesh(run);
  print_groups(run.asked);
  print_target(machine.platform.target, run);
  print_notes(options, machine);
  fmt::print("{}", float8.text());
  if (std::string warning = reference_warning(find_reference_nodes(step, *machine.platform.kernels)); !warning.empty())
    fmt::print("{}\n", warning);
  print_passes("forward pass", step.forward_reports);
  for (size_t p = 0; p < step.programs.size(); ++p) print_program(step.programs[p], options, measured[p]);
  print_summary(step, machine.platform.target);
  print_fit(step, options, machine);
  print_advice(config, machine.platform);
  if (!options.timeline.empty()) {
    write_output_file(options.timeline, timeline_html(step, machine.platform.target));
    fmt::print("the timeline is in {}\n", printable(options.timeline));
  }
  return 0;
}

}  // namespace

Command explain_command() {
  return make_command<ExplainOptions>(
      "explain", "what the compiler makes of a run: passes, kernels, FLOPs, bytes, predicted time, memory",
      "Works for any size on any machine, as nothing is allocated:\n\n"
      "  tokamak explain --model.preset=gpt2-1558m --train.batch=1",
      run_explain);
}

}  // namespace tokamak
