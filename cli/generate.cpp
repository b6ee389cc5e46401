// `tokamak generate`: text from a checkpoint, several ones side by side.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <span>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "checkpoint/run_folder.h"
#include "cli/commands.h"
#include "cli/model_from_checkpoint.h"
#include "data/data_tokenizer.h"
#include "data/sources/content.h"
#include "data/tokenizer_files.h"
#include "data/visible_text.h"
#include "exec/task_queue.h"
#include "run/generator.h"
#include "run/trainer.h"

namespace tokamak {
namespace {

struct GenerateArguments {
  std::string run = "run";
  std::string weights = kLastWeights;
  std::string prompt;
  std::string prompts;
  std::string vocab;
  int64_t tokens = 200;
  int64_t samples = 1;
  int64_t rows = 8;
  double temperature = 0.8;
  int64_t top_k = 50;
  double top_p = 1.0;
  int64_t seed = 1;
  std::string device = "auto";
  int64_t threads = 0;
  ModelMesh mesh;
};

void visit(FieldList& v, GenerateArguments& c) {
  v.positional("run", c.run, "run folder or checkpoint", false);
  v("weights", c.weights, "which of them: last, or ema, the mean over steps that optimizer.ema keeps",
    one_of({kLastWeights, kAveragedWeights}));
  v("prompt", c.prompt, "text to continue; empty: begin a document");
  v("prompts", c.prompts, "file with a text to continue on each line, instead of --prompt");
  v("vocab", c.vocab, "folder with the tokenizer; empty: the run's own");
  v("tokens", c.tokens, "tokens to generate; fewer when a document ends", at_least(1));
  v("samples", c.samples, "texts to generate, of each prompt", at_least(1));
  v("rows", c.rows, "texts at a time: together they take little longer than one", at_least(1));
  v("temperature", c.temperature, "0 takes the likeliest token, 1 samples the model's own distribution", at_least(0));
  v("top_k", c.top_k, "choose among this many of the likeliest tokens; 0: all", at_least(0));
  v("top_p", c.top_p, "choose among the fewest tokens with this much probability together", between(0, 1));
  v("seed", c.seed, "the same seed gives the same text", at_least(0));
  v("device", c.device, "auto (a GPU when there is one), cpu, cuda or cuda:<number>");
  v("threads", c.threads, "CPU threads; 0: all", at_least(0));
  v.section("mesh", c.mesh, "how the model is divided over devices");
}

// What a model writes can be what a terminal would obey; elsewhere it is written as it is.
std::string shown(std::string text) { return ::isatty(STDOUT_FILENO) == 1 ? printable(text) : std::move(text); }

// Prints tokens as they come; holds back bytes of a UTF-8 character that is not whole yet.
class Printer {
 public:
  explicit Printer(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add(int32_t token) {
    pending_ += visible_text(tokenizer_, {&token, 1});
    size_t whole = pending_.size() - unfinished();
    std::string text = shown(pending_.substr(0, whole));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    pending_.erase(0, whole);
  }

  ~Printer() {
    std::fwrite(pending_.data(), 1, pending_.size(), stdout);
    std::fputc('\n', stdout);
  }

 private:
  size_t unfinished() const {
    for (size_t back = 1; back <= std::min<size_t>(3, pending_.size()); ++back) {
      auto byte = uint8_t(pending_[pending_.size() - back]);
      if (byte < 0x80) return 0;
      if (byte < 0xC0) continue;  // inside a character
      size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      return length > back ? back : 0;
    }
    return 0;
  }

  const Tokenizer& tokenizer_;
  std::string pending_;
};

using TokenizerPointer = std::shared_ptr<const Tokenizer>;

// What can be had before the model is opened; null: the run's data has it, if anything does.
TokenizerPointer open_tokenizer(const GenerateArguments& arguments) {
  if (arguments.vocab.empty()) return load_model_tokenizer(arguments.run);
  return std::make_shared<const Tokenizer>(load_tokenizer(arguments.vocab));
}

// `tokenizer`, or where that is null the data's, if it is the one that the model was trained with.
TokenizerPointer require_tokenizer(TokenizerPointer tokenizer, const GenerateArguments& arguments,
                                   const OpenedModel& model) {
  std::string vocab = arguments.vocab.empty() ? model.config.data.path.front() : arguments.vocab;
  if (!tokenizer) tokenizer = load_data_tokenizer(model.config.data);
  if (!tokenizer)
    user_error(
        "[generate] expected the run's tokenizer in {}, got none; check the path, or name the folder with its files: "
        "--vocab=DIR",
        vocab);
  // A run on files of tokens knows of no tokenizer; then only the size can be compared.
  const std::string& expected = model.checkpoint.state.tokenizer;
  bool same = expected.empty() ? tokenizer->vocab_size() <= model.config.model.vocab
                               : tokenizer_fingerprint(*tokenizer) == expected;
  if (!same)
    user_error(
        "[generate] expected the tokenizer that {} was trained with, got another one in {}; name the folder of "
        "that one: --vocab=DIR",
        model.checkpoint.path.string(), vocab);
  return tokenizer;
}

// The last line may end or not; a byte order mark is no text.
std::vector<std::string> read_prompts(const GenerateArguments& arguments) {
  if (arguments.prompts.empty()) return {arguments.prompt};
  if (!arguments.prompt.empty())
    user_error("[generate] expected --prompt or --prompts, got both; add the text to {}", arguments.prompts);
  std::vector<std::string> prompts;
  std::string text = read_file(arguments.prompts, kLargeFile);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  std::istringstream lines(std::move(text));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    prompts.push_back(line);
  }
  if (prompts.empty())
    user_error("[generate] expected a text on each line of {}, got an empty file", arguments.prompts);
  return prompts;
}

struct Text {
  std::string prompt;
  int64_t seed;
};

std::vector<Text> texts_to_generate(const GenerateArguments& arguments) {
  std::vector<Text> texts;
  for (const std::string& prompt : read_prompts(arguments))
    for (int64_t i = 0; i < arguments.samples; ++i) texts.push_back({prompt, arguments.seed + i});
  return texts;
}

// A single text is printed as it comes, several when all of them are there; by one of all ranks.
void print_texts(Generator& generator, const Tokenizer& tokenizer, std::span<const Text> texts,
                 const GenerateArguments& arguments, bool prints) {
  std::vector<GenerationRow> rows;
  for (const Text& text : texts) {
    rows.push_back({tokenizer.encode(text.prompt), text.seed});
    if (rows.back().prompt.empty()) rows.back().prompt = {tokenizer.end_of_text()};
  }
  std::vector<std::vector<int32_t>> made(texts.size());
  std::optional<Printer> printer;
  if (prints && texts.size() == 1) {
    fmt::print("{}", shown(texts[0].prompt));
    printer.emplace(tokenizer);
  }
  SamplingOptions options{arguments.temperature, arguments.top_k, arguments.top_p};
  generator.generate(rows, arguments.tokens, options, [&](size_t row, int32_t token) {
    if (token == tokenizer.end_of_text()) return false;
    printer ? printer->add(token) : made[row].push_back(token);
    return true;
  });
  if (printer || !prints) return;
  for (size_t i = 0; i < texts.size(); ++i)
    fmt::print("{}{}{}\n", i > 0 ? "---\n" : "", shown(texts[i].prompt), shown(visible_text(tokenizer, made[i])));
}

int run_generate(const GenerateArguments& arguments) {
  OpenedModel model;
  TokenizerPointer tokenizer;
  TaskQueue beside;  // a large vocabulary takes as long as the model; last, for its tasks use the others
  beside.submit([&] { tokenizer = open_tokenizer(arguments); });
  model = open_model(arguments.run, arguments.weights, arguments.mesh);
  model.config.threads = arguments.threads;
  model.config.device = arguments.device;
  std::vector<Text> texts = texts_to_generate(arguments);
  beside.submit([&] { tokenizer = require_tokenizer(tokenizer, arguments, model); });
  if (arguments.mesh.tensor > 1) beside.wait();  // ranks may be threads
  use_model(model.config, [&](const RankWork& rank, const Platform& platform) {
    auto rows = std::min(size_t(arguments.rows), texts.size());
    Generator generator(resolve(rank.config, platform.target), platform, *rank.machine.backend, int64_t(rows), nullptr,
                        0, rank.ranks);
    load_parameters(model.checkpoint, generator.weights());
    if (!rank.ranks) beside.wait();
    for (size_t first = 0; first < texts.size(); first += rows) {
      if (first > 0 && leads(rank.ranks)) fmt::print("---\n");
      print_texts(generator, *tokenizer, std::span(texts).subspan(first, std::min(rows, texts.size() - first)),
                  arguments, leads(rank.ranks));
    }
  });
  return 0;
}

}  // namespace

Command generate_command() {
  return make_command<GenerateArguments>("generate", "sample text from a checkpoint",
                                         "  tokamak generate run --prompt=\"In the beginning\" --tokens=100",
                                         run_generate);
}

}  // namespace tokamak
