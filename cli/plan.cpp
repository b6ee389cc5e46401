// `tokamak plan`: which layout trains a model on a cluster, how long and for how much, before anyone pays for it.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <future>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "advise/calibrate.h"
#include "advise/exact.h"
#include "advise/examples.h"
#include "advise/format_plan.h"
#include "advise/format_published.h"
#include "advise/nearest.h"
#include "advise/search.h"
#include "advise/this_machine.h"
#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/metrics.h"
#include "cli/commands.h"
#include "cli/machine.h"
#include "cli/quote.h"
#include "compile/resolved_run.h"
#include "config/cluster.h"
#include "config/config.h"
#include "config/json.h"
#include "config/preset.h"
#include "data/data_tokenizer.h"
#include "graph/gpu_target.h"
#include "model/model.h"
#include "pages/plan_html.h"
#include "plan/units.h"
#include "run/initial_model.h"
#include "run/run_progress.h"
#include "scaling/format_budget.h"

namespace tokamak {
namespace {

struct PlanOptions {
  std::string config;
  std::string cluster = "h200";
  std::string calibrate;
  int64_t gpus = 0;
  double tokens = 0;
  std::string budget;
  int64_t layouts = 5;
  int64_t exact = 3;
  bool json = false;
  std::string html;
  bool clusters = false;
  bool examples = false;
  bool published = false;
  RunConfig run;
  GivenOptions given;
  int64_t batch = 0;  // train.batch where it is given
  std::vector<ScheduleChoice> schedules = usual_schedules();
};

void visit(FieldList& v, PlanOptions& c) {
  v.config_file("run", c.config, "run file (TOML, or a run's config.json), or the folder of a run");
  v("cluster", c.cluster,
    "what to train on: a name that --clusters lists, a TOML file like those, or here: this machine's GPUs");
  v("calibrate", c.calibrate,
    "folder of a run that trained on such GPUs: the cluster's load_clock becomes what explains its steps; empty: none");
  v("gpus", c.gpus, "GPUs to train on; 0: those of a node", at_least(0));
  v("tokens", c.tokens,
    "tokens to train on; 0: those of train.steps or train.tokens where one is said, else 20 for each parameter",
    at_least(0));
  v("budget", c.budget,
    "what may be spent: " + std::string(kBudgetForm) + "; tells which model and how many tokens; empty: none");
  v("layouts", c.layouts, "layouts to show, the fastest first", at_least(1));
  v("exact", c.exact, "how many of them are compiled, too, for their exact memory and time", at_least(0));
  v("json", c.json, "print one JSON object, for programs");
  v("html", c.html, "HTML file for charts of time and memory over all layouts; empty: none");
  v("clusters", c.clusters, "list the known clusters and where every figure comes from");
  v("examples", c.examples, "print numbers to know before one trains, with their formulas, and Megatron-LM's table");
  v("published", c.published, "predict runs that others published, with the source of each; tells how far it is off");
  v.config(c.run);
}

bool is_said(const PlanOptions& c, const std::string& key) { return c.given.chose(key); }

bool is_typed(const PlanOptions& c, std::string_view key) {
  return std::ranges::find(c.given.options, key, &Assignment::key) != c.given.options.end();
}

bool is_priced(Precision precision) { return precision == Precision::kBf16 || precision == Precision::kFp8; }

// What layouts have of their own is refused rather than left out in silence.
void require_possible(const PlanOptions& c) {
  const CompileConfig& compile = c.run.compile;
  if (is_said(c, "device") && c.run.device != "auto" && c.run.device != "cuda")
    user_error("[device] expected cuda, as plan is for the GPUs of --cluster, got {}; leave it out", c.run.device);
  if (is_said(c, "compile.precision") && compile.precision != Precision::kAuto && !is_priced(compile.precision))
    user_error("[compile.precision] expected bf16 or fp8, in which plan prices layouts, got {}; leave it out for bf16",
               precision_name(compile.precision));
  if (is_said(c, "compile.memory_budget_gib") && compile.memory_budget_gib > 0)
    user_error(
        "[compile.memory_budget_gib] expected none, as plan gives each layout what its GPU has, got {:g}; leave it "
        "out, "
        "or set gpu.memory_bytes in a cluster file",
        compile.memory_budget_gib);
  if (is_said(c, "mesh.slots") && c.run.mesh.slots > 1)
    user_error("[mesh.slots] expected 1 (sums in any order), with which plan prices every layout, got {}; leave it out",
               c.run.mesh.slots);
  for (const char* key : {"train.steps", "train.tokens", "train.epochs"})
    if (is_typed(c, "tokens") && is_typed(c, key))
      user_error("[tokens] expected --tokens or --{0}, either of which says the other, got both; leave one out", key);
  if (c.tokens == 0 && c.run.train.epochs > 0)
    user_error(
        "[train.epochs] expected --tokens, as plan reads no data and does not know its windows, got epochs ({:g}); "
        "give --tokens",
        c.run.train.epochs);
}

// A schedule that is said is the only one, and so is a number of chunks for `interleaved`.
std::vector<ScheduleChoice> wanted_schedules(const PlanOptions& c) {
  const MeshConfig& mesh = c.run.mesh;
  std::vector<ScheduleChoice> schedules = usual_schedules();
  bool is_interleaved = mesh.schedule == "interleaved";
  if (is_said(c, "mesh.schedule")) schedules = {{mesh.schedule, is_interleaved ? 2 : 1, is_interleaved}};
  if (!is_said(c, "mesh.interleave") || mesh.interleave == 1) return schedules;
  std::erase_if(schedules, [](const ScheduleChoice& choice) { return choice.schedule != "interleaved"; });
  if (schedules.empty())
    user_error("[mesh.interleave] expected 1 with mesh.schedule={}, got {}; leave it out", mesh.schedule,
               mesh.interleave);
  schedules = {{"interleaved", mesh.interleave}};
  return schedules;
}

// A micro-batch that is said beside the step holds for all layouts.
bool holds_micro_batch(const PlanOptions& c) { return is_said(c, "train.batch") && c.run.train.total_batch > 0; }

// The layouts have micro-batches, slots and schedules of their own.
void complete(PlanOptions& c) {
  require_possible(c);
  c.schedules = wanted_schedules(c);
  c.run.mesh.slots = MeshConfig().slots;
  c.run.mesh.schedule = MeshConfig().schedule;
  c.run.mesh.interleave = MeshConfig().interleave;
  if (c.given.has("train.batch")) c.batch = c.run.train.batch;
  if (!holds_micro_batch(c)) c.run.train.batch = std::max<int64_t>(c.run.mesh.data, 1);
}

// What is typed of the run, to train it: all but the layout, the steps, and what only plan knows.
std::string typed_for_train(const PlanOptions& c) {
  constexpr std::string_view kOfLayout[] = {"train.batch", "train.total_batch", "train.steps"};
  std::string text = c.config.empty() ? "" : shell_word(c.config) + " ";
  for (const Assignment& option : c.given.options) {
    bool is_of_run = option.key.find('.') != option.key.npos;
    bool is_layout = option.key.starts_with("mesh.") || std::ranges::find(kOfLayout, option.key) != std::end(kOfLayout);
    if (is_of_run && !is_layout) text += shell_word(fmt::format("--{}={}", option.key, option.typed)) + " ";
  }
  return text;
}

std::string link_text(const LinkConfig& link) {
  return link.bandwidth.is_known() ? format_count(link.bandwidth.value, "B/s") : "none";
}

// Every figure with its source, but for those that are unknown.
void print_sources(ClusterConfig cluster) {
  constexpr std::string_view kValue = ".value";
  std::vector<Field> fields = fields_of(cluster);
  for (const Field& field : fields) {
    if (!field.key.ends_with(kValue)) continue;
    std::string key = field.key.substr(0, field.key.size() - kValue.size());
    double value = std::get<double>(get(field));
    if (value > 0)
      fmt::print("  {:<24} {:<14.6g} {}\n", key, value,
                 std::get<std::string>(get(*find_field(fields, key + ".source"))));
  }
}

void print_clusters() {
  for (const std::string& name : cluster_names()) {
    ClusterConfig cluster = read_cluster(name);
    fmt::print("{}: {}\n", name, cluster.summary);
    fmt::print("  {} GPU{} a node, {}; bf16 {}, memory {} at {}; links {} within a node, {} between\n",
               cluster.gpus_per_node, cluster.gpus_per_node == 1 ? "" : "s",
               cluster.nodes == 0 ? "any number of nodes"
                                  : fmt::format("{} node{}", cluster.nodes, cluster.nodes == 1 ? "" : "s"),
               format_count(cluster.gpu.half_flops.value, "FLOP/s"), format_bytes(cluster.gpu.memory_bytes.value),
               format_count(cluster.gpu.memory_bandwidth.value, "B/s"), link_text(cluster.within),
               link_text(cluster.between));
    print_sources(cluster);
    if (!cluster.price.is_known())
      fmt::print("  {:<24} {:<14} {}\n", "price", "-", "none was found; set it in a file of one's own");
    fmt::print("\n");
  }
}

// Those of a step as the run would take it. Where nothing is said of that, half a million tokens or fewer, which can be
// divided into micro-batches, or a sequence for each GPU.
int64_t choose_sequences(const PlanOptions& options, int64_t gpus) {
  constexpr int64_t kUsualTokens = 1 << 19;
  const RunConfig& config = options.run;
  int64_t context = config.model.context;
  if (config.train.total_batch % context != 0)
    user_error("[train.total_batch] expected a multiple of model.context = {} tokens, got {}; use {}", context,
               config.train.total_batch, (config.train.total_batch / context + 1) * context);
  if (config.train.total_batch > 0) return config.train.total_batch / context;
  if (options.batch > 0) return options.batch;
  return gpus * int64_t(std::bit_floor(uint64_t(std::max<int64_t>(kUsualTokens / context / gpus, 1))));
}

// As long as is said, or as the run.
double choose_tokens(const PlanOptions& options, const TrainingRequest& request) {
  constexpr double kTokensOfParameter = 20;  // Hoffmann et al., arXiv 2203.15556
  if (options.tokens > 0) return options.tokens;
  const TrainConfig& train = options.run.train;
  if (train.tokens > 0) return double(train.tokens);
  if (options.given.has("train.steps") && train.steps > 0) return double(train.steps) * tokens_of_step(request);
  return kTokensOfParameter * double(count_parameters(request.run.model));
}

// A step's at least: fewer are likely to lack a letter for thousands, millions or more.
void require_step(double tokens, const TrainingRequest& request) {
  if (double step = tokens_of_step(request); tokens < step)
    user_error(
        "[tokens] expected the {:.0f} tokens of a step at least, got {:.0f}; 15T and 15B are 15 trillion and billion",
        step, tokens);
}

// What was said of the mesh holds for all layouts.
std::function<bool(const ParallelLayout&)> allowed(const PlanOptions& options) {
  MeshConfig mesh = options.run.mesh;
  auto said = [&](const char* key) { return is_said(options, std::string("mesh.") + key); };
  bool pipe = said("pipe"), data = said("data") && mesh.data > 0, context = said("context"), tensor = said("tensor"),
       zero = said("zero");
  int64_t batch = holds_micro_batch(options) ? options.batch : 0;
  return [=](const ParallelLayout& layout) {
    const MeshConfig& m = layout.mesh;
    return (!pipe || m.pipe == mesh.pipe) && (!data || m.data == mesh.data) &&
           (!context || m.context == mesh.context) && (!tensor || m.tensor == mesh.tensor) &&
           (!zero || m.zero == mesh.zero) && (batch == 0 || layout.micro_batch * m.data == batch);
  };
}

std::string describe(const std::optional<Nearest>& nearest) {
  if (!nearest) return "no layout of this cluster does, nor of a known one";
  std::string text = fmt::format("the nearest that does: {} on {} GPU{}", describe(nearest->layout.layout),
                                 nearest->gpus, nearest->gpus == 1 ? "" : "s");
  if (nearest->cluster.empty()) return text;
  return fmt::format("no layout of this cluster does; {} of --cluster={}", text, nearest->cluster);
}

// What was refused is not named as what does fit: `passed_over` are layouts that do not when they are compiled whole.
[[noreturn]] void refuse(const TrainingRequest& request, const std::vector<ParallelLayout>& passed_over) {
  Estimate smallest = smallest_layout(request);
  double bytes = usable_bytes(request.cluster, smallest.layout.mesh);
  std::string more = smallest.memory.total() <= bytes ? " or a little more when it is compiled" : "";
  user_error("[plan] expected a layout that fits {} of a GPU, got {} at least{} ({}); {}", format_bytes(bytes),
             format_bytes(smallest.memory.total()), more, describe(smallest.layout),
             describe(find_nearest(request, passed_over)));
}

// Those that fit when they are compiled, too, all at once. The others are kept apart.
std::vector<PlannedLayout> compile_all(const RunConfig& run, TrainingPlan& plan, const Platform& platform,
                                       std::span<const Estimate> estimates) {
  std::vector<std::future<PlannedLayout>> tasks;
  for (const Estimate& one : estimates)
    tasks.push_back(std::async(std::launch::async, [&] {
      PlannedLayout layout{one, {}};
      layout.exact = compile_within_memory(run, layout.estimate.layout, plan.request.cluster, platform);
      return layout;
    }));
  std::vector<PlannedLayout> compiled;
  for (std::future<PlannedLayout>& task : tasks)
    if (PlannedLayout layout = task.get(); layout.exact)
      compiled.push_back(std::move(layout));
    else
      plan.passed_over.push_back(layout.estimate.layout);
  return compiled;
}

// The first that fit when they are compiled, too, in the order of their exact times; without CUDA there are no kernels
// to compile for. Where none of the first does, the next are tried. Then the others, as they are estimated.
std::vector<PlannedLayout> compile_fastest(const RunConfig& run, const PlanOptions& options, TrainingPlan& plan) {
  constexpr int kTries = 2;
  const ClusterConfig& cluster = plan.request.cluster;
  std::span<const Estimate> left = plan.found;
  std::vector<PlannedLayout> layouts;
  auto wanted = size_t(options.layouts), at_once = std::min(size_t(options.exact), wanted);
  if (cuda::is_built() && at_once > 0) {
    Platform platform = cuda::nominal_platform(cluster.gpu);
    for (int i = 0; i < kTries && layouts.empty(); ++i) {
      size_t count = std::min(at_once, left.size());
      layouts = compile_all(run, plan, platform, left.first(count));
      left = left.subspan(count);
    }
  }
  std::stable_sort(layouts.begin(), layouts.end(),
                   [](const PlannedLayout& a, const PlannedLayout& b) { return a.step_seconds() < b.step_seconds(); });
  if (!layouts.empty()) plan.passed_for_margin = recommend(layouts, cluster);
  for (; layouts.size() < wanted && !left.empty(); left = left.subspan(1)) layouts.push_back({left[0], {}});
  return layouts;
}

MeasuredGpu measure_gpu(int ordinal) {
  RunConfig config;
  config.device = gpu_name(ordinal);
  Machine machine = open_machine(config);
  cuda::DeviceInfo info = cuda::describe_device(ordinal);
  return {.name = info.name,
          .major = info.major,
          .minor = info.minor,
          .multiprocessors = info.multiprocessors,
          .l2_bytes = info.l2_bytes,
          .shared_bytes = info.shared_bytes,
          .free_bytes = machine.backend->free_bytes(),
          .memory_bandwidth = described_bandwidth(machine.platform.target)};
}

// `here` is this machine as it is measured now.
ClusterConfig find_cluster(const std::string& name) {
  if (name != "here") return read_cluster(name);
  int count = cuda::device_count();
  if (count == 0) user_error("[cluster] expected a GPU in this machine for --cluster=here, found none; name a cluster");
  return this_machine(measure_gpu(0), count);
}

// What a run on the cluster says of it, which it then has.
std::string calibrate_by(const std::string& folder, TrainingRequest& request) {
  std::optional<FoundCheckpoint> found = peek_checkpoint(folder);
  std::filesystem::path file = std::filesystem::path(folder) / "config.json";
  RunConfig run = found ? config_of(*found) : run_config_from_json(read_file(file), file.string());
  run = with_data_vocab(run);
  if (!is_gpu_device(run))
    user_error("[calibrate] expected a run on GPUs, got {}, which trained on {}", folder, run.device);
  double measured = usual_step_seconds(std::filesystem::path(folder) / "metrics.jsonl");
  Calibration found_clock = calibrate(run, measured, request.cluster, request.platform);
  request.cluster.gpu.load_clock = {found_clock.load_clock, "a step of " + folder};
  return fmt::format(
      "by {}: a step took {:.1f} ms and is predicted to take {:.1f}; for a cluster file, below [gpu]: "
      "load_clock = {{value = {:.3f}, source = \"{}\"}}",
      folder, 1e3 * found_clock.measured, 1e3 * found_clock.predicted, found_clock.load_clock, folder);
}

// As for any plan.
GpuPlatform nominal_platform() {
  if (cuda::is_built()) return [](const GpuConfig& gpu) { return cuda::nominal_platform(gpu); };
  return platform_of_rates;
}

// What is said of the mesh divides the GPUs, whatever the other axes have.
void require_axes(const PlanOptions& options, const ClusterConfig& cluster, int64_t gpus) {
  const MeshConfig& mesh = options.run.mesh;
  using Axis = std::pair<const char*, int64_t>;
  int64_t ranks = 1;
  std::vector<std::string> said;
  for (auto [name, size] :
       {Axis("pipe", mesh.pipe), Axis("data", mesh.data), Axis("context", mesh.context), Axis("tensor", mesh.tensor)}) {
    if (size < 2 || !is_said(options, fmt::format("mesh.{}", name))) continue;
    ranks *= size;
    said.push_back(fmt::format("mesh.{}={}", name, size));
  }
  if (gpus % ranks == 0) return;
  int64_t unit = gpus > cluster.gpus_per_node ? std::lcm(ranks, int64_t(cluster.gpus_per_node)) : ranks;
  int64_t below = gpus / unit * unit;
  user_error("[gpus] expected a multiple of the {} ranks of {}, got {}; {}{} would fit", ranks, fmt::join(said, " x "),
             gpus, below > 0 ? fmt::format("{} or ", below) : "", below + unit);
}

// The run, and what is to be had of the cluster; `calibrated` is told what a measured run says of it.
TrainingRequest request_of(const PlanOptions& options, const RunConfig& run, std::string& calibrated) {
  TrainingRequest request;
  request.run = run;
  if (!is_priced(run.compile.precision)) request.run.compile.precision = Precision::kBf16;
  request.platform = nominal_platform();
  request.cluster = find_cluster(options.cluster);
  resolve(request.run.compile, request.platform(request.cluster.gpu).target);  // refuses what its GPUs do not have
  if (!options.calibrate.empty()) calibrated = calibrate_by(options.calibrate, request);
  request.gpus = options.gpus > 0 ? options.gpus : request.cluster.gpus_per_node;
  require_gpus(request.cluster, request.gpus);
  require_axes(options, request.cluster, request.gpus);
  request.schedules = options.schedules;
  request.allows = allowed(options);
  return request;
}

// All but what is said of the best layout.
TrainingPlan find_layouts(const PlanOptions& options) {
  TrainingPlan plan;
  plan.typed = typed_for_train(options);
  plan.asks_data = !options.given.has("data.path");
  plan.asks_rate = !options.given.has("optimizer.lr") && options.run.optimizer.name == "adamw";
  plan.asks_warmup = !options.given.has("optimizer.warmup_steps");
  if (options.run.model.vocab == 0 && !options.given.has("data.path"))
    user_error(
        "[model.vocab] expected the number of tokens in the vocabulary, got 0; give --model.vocab or --data.path");
  RunConfig run = with_data_vocab(options.run);
  plan.request = request_of(options, run, plan.calibrated);
  TrainingRequest& request = plan.request;
  request.sequences = choose_sequences(options, request.gpus);
  request.tokens = choose_tokens(options, request);
  if (options.tokens > 0) require_step(options.tokens, request);
  request.wanted = std::max(size_t(options.layouts), options.html.empty() ? 0 : kMostRows);
  plan.found = search_layouts(request);
  if (plan.found.empty()) refuse(request, {});
  plan.layouts = compile_fastest(run, options, plan);
  if (plan.layouts.empty()) refuse(request, plan.passed_over);
  return plan;
}

void describe_best(TrainingPlan& plan) {
  const TrainingRequest& request = plan.request;
  const Estimate& best = plan.layouts[0].estimate;
  std::future<std::vector<Advice>> advice = std::async(
      std::launch::async, [&] { return advise(request.run, best.layout, request.platform(request.cluster.gpu)); });
  plan.cluster_changes = cluster_changes(request, plan.found);
  plan.layout_changes = layout_changes(request, best, plan.found);
  plan.limit = limit_of(plan.cluster_changes, best);
  plan.advice = advice.get();
}

// The sizes are what is asked for, so that none may be said, nor how long they are trained.
void require_open(const PlanOptions& options) {
  for (const char* key : {"tokens", "train.steps", "train.tokens", "train.epochs", "model.layers", "model.width",
                          "model.heads", "model.preset"})
    if (is_typed(options, key))
      user_error(
          "[budget] expected model and length to be left open, as a budget asks for them, got --{}; leave it out", key);
  if (!options.html.empty()) user_error("[html] expected a plan to draw, got a budget; leave it out");
}

// Of the family that is said, else of all.
std::vector<std::string> presets_for(const PlanOptions& options) {
  std::vector<std::string> names;
  for (const std::string& name : preset_choices()) {
    ModelConfig model;
    model.preset = name;
    apply_preset(model);
    if (!name.empty() && (!is_said(options, "model.family") || model.family == options.run.model.family))
      names.push_back(name);
  }
  return names;
}

// What is typed of the cluster, for a plan of one of the models.
std::string typed_for_plan(const PlanOptions& options) {
  constexpr std::string_view kOfAnswer[] = {"budget", "json", "model.family"};
  std::string text = options.config.empty() ? "" : " " + shell_word(options.config);
  for (const Assignment& option : options.given.options)
    if (std::ranges::find(kOfAnswer, option.key) == std::end(kOfAnswer))
      text += " " + shell_word(fmt::format("--{}={}", option.key, option.typed));
  return text;
}

int run_budget(const PlanOptions& options) {
  require_open(options);
  BudgetRequest request{.budget = parse_budget(options.budget)};
  std::string calibrated;
  RunConfig run = options.run;
  if (run.model.vocab == 0) run.model.vocab = ModelConfig().vocab;
  request.training = request_of(options, run, calibrated);
  request.presets = presets_for(options);
  request.sequences = [&](const ModelConfig& model) {
    PlanOptions sized = options;
    sized.run.model = model;
    return choose_sequences(sized, request.training.gpus);
  };
  BudgetPlan plan = plan_budget(request);
  if (!options.json && !calibrated.empty()) fmt::print("calibrated {}\n", printable(calibrated));
  fmt::print("{}", printable(options.json ? budget_json(plan) + "\n" : format_budget(plan, typed_for_plan(options))));
  return 0;
}

int run_published(const PlanOptions& options) {
  if (!options.html.empty()) user_error("[html] expected a plan to draw, got --published; leave it out");
  std::vector<PublishedPrediction> predictions = predict_published(published_runs(), nominal_platform());
  fmt::print("{}", options.json ? published_json(predictions) + "\n" : format_published(predictions));
  return 0;
}

// --clusters and --examples print text alone.
void require_plan(const PlanOptions& options) {
  if (!options.clusters && !options.examples) return;
  const char* list = options.clusters ? "--clusters" : "--examples";
  if (options.json) user_error("[json] expected a plan to print as JSON, got {}, which is text; leave it out", list);
  if (!options.html.empty()) user_error("[html] expected a plan to draw, got {}, which is text; leave it out", list);
}

// What a search has compiled is a million small pieces, which take a quarter of a second to free one by one; the system
// frees them at once when the program ends.
void keep_until_exit(std::shared_ptr<BlockLibrary> library) {
  static auto* kept = new std::vector<std::shared_ptr<BlockLibrary>>;
  kept->push_back(std::move(library));
}

int run_plan(const PlanOptions& asked) {
  PlanOptions options = asked;
  options.run = with_initial_model(options.run, options.given);
  require_plan(options);
  if (options.clusters) print_clusters();
  if (options.examples) fmt::print("{}", format_examples());
  if (options.clusters || options.examples) return 0;
  if (options.published) return run_published(options);
  if (!options.budget.empty()) return run_budget(options);
  TrainingPlan plan = find_layouts(options);
  keep_until_exit(plan.request.library);
  if (!options.json) {  // the answer first: what would be otherwise takes as long again
    fmt::print("{}", printable(format_layouts(plan)));
    std::fflush(stdout);
  }
  describe_best(plan);
  if (!options.html.empty()) write_output_file(options.html, plan_html(plan));
  fmt::print("{}", printable(options.json ? plan_json(plan) + "\n" : format_best(plan)));
  return 0;
}

}  // namespace

Command plan_command() {
  return make_command<PlanOptions>("plan", "which layout trains a model on a cluster, how long, and for how much",
                                   "Nothing is allocated, and no GPU is needed. What is said of --mesh.* holds for all "
                                   "layouts. Steps are as the run would take them: of train.total_batch tokens, which "
                                   "train.batch then divides, or of train.batch sequences; where neither is said, of "
                                   "half a million tokens:\n\n"
                                   "  tokamak plan --model.preset=gpt2-1558m --cluster=dgx-a100 --tokens=30B\n"
                                   "  tokamak plan --model.preset=gpt3-6.7b --cluster=h200 --gpus=4 --tokens=10B\n"
                                   "  tokamak plan --budget=1000gpuh --cluster=h200 --gpus=8\n"
                                   "  tokamak plan --clusters\n"
                                   "  tokamak plan --examples\n"
                                   "  tokamak plan --published",
                                   run_plan);
}

}  // namespace tokamak
