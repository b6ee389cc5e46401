// `tokamak eval`: validation loss, perplexity and bits per byte of checkpoints, or tasks that they are asked.
#include <fmt/core.h>

#include "base/error.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "checkpoint/run_folder.h"
#include "cli/commands.h"
#include "cli/eval_output.h"
#include "cli/model_from_checkpoint.h"
#include "cli/progress_line.h"
#include "cli/streams.h"
#include "config/config.h"
#include "data/data_path.h"
#include "data/data_tokenizer.h"
#include "data/open_consistently.h"
#include "data/tokenizer_files.h"
#include "evaluate/run_tasks.h"
#include "run/session.h"

namespace tokamak {
namespace {

struct EvalArguments {
  std::vector<std::string> runs = {"run"};
  std::string weights = kLastWeights;
  std::vector<std::string> task;
  int64_t limit = 0;
  bool cut_contexts = false;
  std::string details;
  std::vector<std::string> data;
  std::string tokenizer;
  std::string split = "val";
  int64_t batches = 0;
  bool json = false;
  std::string device = "auto";
  int64_t threads = 0;
  ModelMesh mesh;
  ModelCompute compile;
};

void visit(FieldList& v, EvalArguments& c) {
  v.positional("run", c.runs, "run folders, checkpoints, or models in Hugging Face's form", false);
  v("weights", c.weights, "which of them: last, or ema, the mean over steps that optimizer.ema keeps",
    one_of({kLastWeights, kAveragedWeights}));
  v("task", c.task, "tasks instead of validation data: KIND:FILE, KIND@SHOTS:FILE, list:FILE; see docs/evaluation.md");
  v("limit", c.limit, "questions from the beginning of each task; 0: all", at_least(0));
  v("cut_contexts", c.cut_contexts, "a context that is too long loses its beginning, instead of being an error");
  v("details", c.details, "file for a line of JSON on each question; empty: none");
  v("data", c.data, "other data than the run's, in the forms of data.path");
  v("tokenizer", c.tokenizer, "folder with the data's tokenizer; empty: its own, or that of the run's data");
  v("split", c.split, "which part of the data", one_of({"val", "train"}));
  v("batches", c.batches, "how many batches, as train.eval_batches counts them, from its beginning; 0: all",
    at_least(0));
  v("json", c.json, "print one JSON object per run, for programs");
  v("device", c.device, "auto (a GPU when there is one), cpu, cuda or cuda:<number>");
  v("threads", c.threads, "CPU threads; 0: all", at_least(0));
  v.section("mesh", c.mesh, "how the model is divided over devices");
  v.section("compile", c.compile, "how it is computed");
}

struct EvalData {
  std::shared_ptr<const Tokenizer> tokenizer;  // null: there is none
  std::shared_ptr<const Corpus> corpus;
};

// The data's own tokenizer, else the run's; it must be the one that the model was trained with.
std::shared_ptr<const Tokenizer> find_tokenizer(const RunConfig& config, const OpenedModel& model) {
  std::shared_ptr<const Tokenizer> tokenizer = load_data_tokenizer(config.data);
  if (!tokenizer) tokenizer = load_model_tokenizer(model.checkpoint.path);
  if (!tokenizer) tokenizer = load_data_tokenizer(model.config.data);
  const std::string& expected = model.checkpoint.state.tokenizer;
  if (tokenizer && !expected.empty() && tokenizer_fingerprint(*tokenizer) != expected)
    user_error(
        "[eval] expected the tokenizer that {} was trained with, got another one in {}; prepare the data with "
        "--vocab={}",
        model.checkpoint.path.string(),
        config.data.tokenizer.empty() ? config.data.path.front() : config.data.tokenizer,
        (run_folder_of(model.checkpoint.path) / kTokenizerFolder).string());
  return tokenizer;
}

EvalData open_data(const EvalArguments& arguments, const RunConfig& config, const OpenedModel& model) {
  for (const DataPath& path : all_data_paths(config.data)) require_exists(path.path);
  std::shared_ptr<const Tokenizer> tokenizer = find_tokenizer(config, model);
  bool train = arguments.split == "train";
  std::optional<Corpus> corpus = train ? open_training_data(config, tokenizer, nullptr, true).sequential()
                                       : open_validation_data(config, tokenizer, true);
  if (!corpus)
    user_error(
        "[eval] expected validation data of more than {} tokens (model.context), got none in {}; name some with "
        "--data, "
        "or take --split=train",
        config.model.context, config.data.path.front());
  return {tokenizer, std::make_shared<const Corpus>(std::move(*corpus))};
}

// One of the runs, with all that is asked of it.
struct AskedRun {
  std::string name;
  OpenedModel model;
  RunConfig config;
  std::vector<Task> tasks;
};

Tokenizer tokenizer_of(const EvalArguments& arguments, const AskedRun& run) {
  if (!arguments.tokenizer.empty()) return load_tokenizer(arguments.tokenizer);
  if (auto own = load_model_tokenizer(run.model.checkpoint.path)) return *own;
  if (auto of_data = load_data_tokenizer(run.model.config.data)) return *of_data;
  user_error("[eval] expected a tokenizer with {}, got none; name its folder with --tokenizer", run.name);
}

AskedRun open_run(const EvalArguments& arguments, const std::string& name, const std::vector<TaskSpec>& specs) {
  AskedRun run{.name = name, .model = open_model(name, arguments.weights, arguments.mesh, arguments.compile)};
  run.config = run.model.config;
  run.config.threads = arguments.threads;
  run.config.device = arguments.device;
  // Files are what they are named for; a folder made by `prepare` has both parts.
  if (!arguments.data.empty()) run.config.data.path = run.config.data.val_path = arguments.data;
  run.config.data.tokenizer = arguments.tokenizer;
  if (specs.empty()) return run;
  TaskOptions options{.limit = arguments.limit, .cut_contexts = arguments.cut_contexts};
  run.tasks = load_tasks(specs, tokenizer_of(arguments, run), run.config.model.context, options);
  for (const Task& task : run.tasks)
    if (task.cut > 0)
      print_warning(fmt::format("{}: {} contexts are longer than model.context = {} and lost their beginning",
                                task.spec.name, task.cut, run.config.model.context));
  return run;
}

EvalReport report_of(const AskedRun& run) {
  return {.path = run.model.checkpoint.path.string(), .name = run.name, .step = run.model.checkpoint.state.step};
}

EvalReport ask_tasks(const AskedRun& run, std::string& details) {
  EvalReport report = report_of(run);
  use_model(run.config, [&](const RankContext& rank, const Platform& platform) {
    ResolvedRun resolved = resolve(rank.config, platform.target);
    TensorStore store(*rank.machine.backend, rank.ranks);
    Scorer scorer(resolved, platform, *rank.machine.backend, store, {.ranks = rank.ranks});
    for (const Task& task : run.tasks) scorer.prepare(task.requests);
    load_parameters(run.model.checkpoint, store);
    if (!leads(rank.ranks)) return void(run_tasks(scorer, run.tasks, {}));
    ProgressLine line;
    report.tasks = run_tasks(
        scorer, run.tasks,
        [&](const std::string& task, size_t done, size_t total) { line.show(task, int64_t(done), int64_t(total)); },
        [&](const Task& task, std::span<const Score> scores) { details += details_of(task, scores); });
  });
  return report;
}

EvalReport validate_run(const EvalArguments& arguments, AskedRun run) {
  EvalReport report = report_of(run);
  report.split = arguments.split;
  RunConfig& config = run.config;
  EvalData data = open_consistently(config.data, [&] { return open_data(arguments, config, run.model); });
  for (const std::string& note : data.corpus->notes()) fmt::print(stderr, "{}\n", printable(note));
  use_model(config, [&](const RankContext& rank, const Platform& platform) {
    ResolvedRun resolved = resolve(rank.config, platform.target);
    int64_t windows = arguments.batches > 0 ? count_windows(resolved, arguments.batches) : data.corpus->windows();
    Evaluator evaluator(data.corpus, data.tokenizer.get(), resolved, windows);
    TensorStore store(*rank.machine.backend, rank.ranks);
    LossProgram program(compile_loss(resolved, platform)[0], *rank.machine.backend, store, {.ranks = rank.ranks});
    load_parameters(run.model.checkpoint, store);
    Evaluation evaluation = evaluator.evaluate([&](std::span<const Batch> batches) { return program.run(batches); });
    if (leads(rank.ranks)) report.validation = evaluation;
  });
  return report;
}

void validate(const EvalArguments& arguments) {
  auto refuse = [](const char* option, const char* needed) {
    user_error("[{}] expected {} beside it, got none; leave {} out", option, needed, option);
  };
  if (arguments.task.empty()) {
    if (!arguments.details.empty()) refuse("--details", "--task");
    if (arguments.limit > 0) refuse("--limit", "--task");
    if (arguments.cut_contexts) refuse("--cut-contexts", "--task");
  } else if (!arguments.data.empty() || arguments.batches > 0) {
    user_error("[--task] expected either tasks or validation data, got --{} as well; run eval twice",
               arguments.batches > 0 ? "batches" : "data");
  }
  if (arguments.runs.size() > 1 && arguments.mesh.tensor > 1)
    user_error("[--mesh.tensor] expected one run, as its ranks are started for it, got {}; name one at a time",
               arguments.runs.size());
  if (!arguments.details.empty()) check_output_file(arguments.details);
}

void print(const EvalArguments& arguments, const std::vector<EvalReport>& reports) {
  if (!has_first_rank()) return;
  if (arguments.json)
    for (const EvalReport& report : reports) print_json(report);
  else if (reports.size() == 1 && reports[0].validation)
    print_validation(reports[0]);
  else
    print_table(reports);
}

int run_eval(const EvalArguments& arguments) {
  std::jthread begins = begin_alone({.tensor = arguments.mesh.tensor}, arguments.device);
  std::vector<TaskSpec> specs = parse_tasks(arguments.task);
  std::vector<AskedRun> runs;
  for (const std::string& name : arguments.runs) runs.push_back(open_run(arguments, name, specs));
  std::vector<EvalReport> reports;
  std::string details;
  for (const AskedRun& run : runs)
    reports.push_back(specs.empty() ? validate_run(arguments, run) : ask_tasks(run, details));
  if (!arguments.details.empty() && has_first_rank()) write_output_file(arguments.details, details);
  print(arguments, reports);
  return 0;
}

}  // namespace

Command eval_command() {
  return make_command<EvalArguments>("eval",
                                     "validation loss, perplexity and bits per byte of checkpoints, or benchmarks",
                                     "    tokamak eval run\n"
                                     "    tokamak eval run1 run2 --task=hellaswag:hellaswag_val.jsonl,text:book.txt\n"
                                     "    tokamak eval gpt2/ --task=choices:mine.jsonl --json",
                                     run_eval);
}

}  // namespace tokamak
