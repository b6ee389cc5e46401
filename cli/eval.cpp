// `tokamak eval`: validation loss, perplexity and bits per byte of a checkpoint.
#include <fmt/core.h>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/run_folder.h"
#include "cli/commands.h"
#include "cli/model_from_checkpoint.h"
#include "config/config.h"
#include "data/data_path.h"
#include "data/data_tokenizer.h"
#include "data/open_consistently.h"
#include "run/evaluator.h"
#include "run/session.h"

namespace tokamak {
namespace {

struct EvalArguments {
  std::string run = "run";
  std::string weights = kLastWeights;
  std::vector<std::string> data;
  std::string tokenizer;
  std::string split = "val";
  int64_t batches = 0;
  std::string device = "auto";
  int64_t threads = 0;
  ModelMesh mesh;
};

void visit(FieldList& v, EvalArguments& c) {
  v.positional("run", c.run, "run folder or checkpoint", false);
  v("weights", c.weights, "which of them: last, or ema, the mean over steps that optimizer.ema keeps",
    one_of({kLastWeights, kAveragedWeights}));
  v("data", c.data, "other data than the run's, in the forms of data.path");
  v("tokenizer", c.tokenizer, "folder with the data's tokenizer; empty: its own, or that of the run's data");
  v("split", c.split, "which part of the data", one_of({"val", "train"}));
  v("batches", c.batches, "how many batches, as train.eval_batches counts them, from its beginning; 0: all",
    at_least(0));
  v("device", c.device, "auto (a GPU when there is one), cpu, cuda or cuda:<number>");
  v("threads", c.threads, "CPU threads; 0: all", at_least(0));
  v.section("mesh", c.mesh, "how the model is divided over devices");
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
        (run_folder_of(model.checkpoint.path) / "tokenizer").string());
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

std::string name_of(const Evaluation& evaluation) {
  size_t entries = evaluation.entries.size();
  return entries == 1 ? evaluation.entries.front().path : fmt::format("{} entries together", entries);
}

void print(const Evaluation& evaluation, const FoundCheckpoint& checkpoint, const std::string& split) {
  fmt::print("{} (step {}), {} of {}: {} tokens\n", printable(checkpoint.path.string()), checkpoint.state.step, split,
             printable(name_of(evaluation)), evaluation.tokens);
  fmt::print("loss {:.4f}  perplexity {:.3f}", evaluation.loss, evaluation.perplexity);
  if (evaluation.bits_per_byte > 0) fmt::print("  bits per byte {:.4f}", evaluation.bits_per_byte);
  fmt::print("\n");
  if (evaluation.entries.size() > 1)
    for (const EntryLoss& entry : evaluation.entries)
      fmt::print("  {}: loss {:.4f}, {} tokens\n", printable(entry.path), entry.loss, entry.tokens);
  if (!evaluation.unknown.empty()) fmt::print("{}\n", printable(evaluation.unknown));
}

int run_eval(const EvalArguments& arguments) {
  OpenedModel model = open_model(arguments.run, arguments.weights, arguments.mesh);
  RunConfig config = model.config;
  config.threads = arguments.threads;
  config.device = arguments.device;
  // Files are what they are named for; a folder made by `prepare` has both parts.
  if (!arguments.data.empty()) config.data.path = config.data.val_path = arguments.data;
  config.data.tokenizer = arguments.tokenizer;
  EvalData data = open_consistently(config.data, [&] { return open_data(arguments, config, model); });
  for (const std::string& note : data.corpus->notes()) fmt::print(stderr, "{}\n", printable(note));
  use_model(config, [&](const RankWork& rank, const Platform& platform) {
    ResolvedRun run = resolve(rank.config, platform.target);
    int64_t windows = arguments.batches > 0 ? count_windows(run, arguments.batches) : data.corpus->windows();
    Evaluator evaluator(data.corpus, data.tokenizer.get(), run, windows);
    TensorStore store(*rank.machine.backend, rank.ranks);
    LossProgram program(compile_loss(run, platform)[0], *rank.machine.backend, store, {.ranks = rank.ranks});
    load_parameters(model.checkpoint, store);
    Evaluation evaluation = evaluator.evaluate([&](std::span<const Batch> batches) { return program.run(batches); });
    if (leads(rank.ranks)) print(evaluation, model.checkpoint, arguments.split);
  });
  return 0;
}

}  // namespace

Command eval_command() {
  return make_command<EvalArguments>("eval", "validation loss, perplexity and bits per byte of a checkpoint", "",
                                     run_eval);
}

}  // namespace tokamak
