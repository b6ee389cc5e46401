// `tokamak eval`: validation loss, perplexity and bits per byte of a checkpoint.
#include <fmt/core.h>

#include <limits>

#include "cli/commands.h"
#include "cli/model_from_checkpoint.h"
#include "train/evaluator.h"
#include "train/session.h"

namespace tokamak {
namespace {

struct EvalArguments {
  std::string run = "run";
  std::string data;
  std::string split = "val";
  int64_t batches = 0;
  std::string device = "auto";
  int64_t threads = 0;
};

void visit(FieldList& v, EvalArguments& c) {
  v.positional("run", c.run, "run folder or checkpoint", false);
  v("data", c.data, "data folder; empty: the run's");
  v("split", c.split, "which part of the data", one_of({"val", "train"}));
  v("batches", c.batches, "how many batches from its beginning; 0: all", at_least(0));
  v("device", c.device, "auto (a GPU when there is one), cpu, cuda or cuda:<number>");
  v("threads", c.threads, "CPU threads; 0: all", at_least(0));
}

int run_eval(const EvalArguments& arguments) {
  OpenedModel model = open_model(arguments.run);
  RunConfig config = model.config;
  config.threads = arguments.threads;
  config.device = arguments.device;
  if (!arguments.data.empty()) config.data.path = arguments.data;
  ShardIndex index = read_shard_index(config.data.path);
  int64_t batches = arguments.batches > 0 ? arguments.batches : std::numeric_limits<int64_t>::max();
  Evaluator evaluator(config.data.path, index, arguments.split == "val" ? index.val : index.train, config, batches);
  Machine machine = open_machine(config);
  TensorStore store(*machine.backend);
  LossProgram program(config, machine.target, *machine.backend, store);
  load_parameters(model.checkpoint.path, store, gpt_parameters(config.model));
  Evaluation evaluation = evaluator.evaluate([&](const Batch& batch) { return program.run(batch); });
  fmt::print("{} (step {}), {} of {}: {} tokens\n", model.checkpoint.path.string(), model.checkpoint.state.step,
             arguments.split, config.data.path, evaluation.tokens);
  fmt::print("loss {:.4f}  perplexity {:.3f}", evaluation.loss, evaluation.perplexity);
  if (evaluation.bits_per_byte > 0) fmt::print("  bits per byte {:.4f}", evaluation.bits_per_byte);
  fmt::print("\n");
  return 0;
}

}  // namespace

Command eval_command() {
  return make_command<EvalArguments>("eval", "validation loss, perplexity and bits per byte of a checkpoint", "",
                                     run_eval);
}

}  // namespace tokamak
