// `tokamak generate`: text from a checkpoint, several ones side by side.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "checkpoint/run_folder.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/model_from_checkpoint.h"
#include "cli/prompt_loop.h"
#include "cli/streams.h"
#include "data/data_tokenizer.h"
#include "data/sources/content.h"
#include "data/tokenizer_files.h"
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
  double min_p = 0;
  double repetition_penalty = 1;
  std::vector<std::string> stop;
  int64_t seed = 1;
  bool interactive = false;
  bool json = false, log_probabilities = false, rate = false;
  std::string device = "auto";
  int64_t threads = 0;
  ModelMesh mesh;
  ModelCompute compile;
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
  v("min_p", c.min_p, "choose among tokens with at least this share of the likeliest one's probability; 0: all",
    between(0, 1));
  v("repetition_penalty", c.repetition_penalty,
    "logits of tokens that the text has are divided by it, negative ones multiplied; 1: none", between(0.01, 100));
  v("stop", c.stop, "strings at the first of which a text ends, without it; \\n is a line's end, \\, a comma");
  v("seed", c.seed, "the same seed gives the same text", at_least(0));
  v("interactive", c.interactive, "continue what is typed, line by line; /help lists what else can be typed");
  v("json", c.json, "print a JSON object on a line for each text, with its tokens, why it ended, and its rate");
  v("log_probabilities", c.log_probabilities,
    "with --json: the natural logarithm of each token's probability by the model alone");
  v("rate", c.rate, "tell the tokens a second, on standard error");
  v("device", c.device, "auto (a GPU when there is one), cpu, cuda or cuda:<number>");
  v("threads", c.threads, "CPU threads; 0: all", at_least(0));
  v.section("mesh", c.mesh, "how the model is divided over devices");
  v.section("compile", c.compile, "how it is computed");
}

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

SamplingOptions sampling_of(const GenerateArguments& a) {
  return {.temperature = a.temperature,
          .top_k = a.top_k,
          .top_p = a.top_p,
          .min_p = a.min_p,
          .repetition_penalty = a.repetition_penalty,
          .log_probabilities = a.log_probabilities};
}

// A model with its tokenizer, and who prints of all ranks.
struct Writer {
  Generator& generator;
  const Tokenizer& tokenizer;
  int64_t context;
  bool prints;
};

std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<int32_t> tokens = tokenizer.encode(prompt);
  return tokens.empty() ? std::vector{tokenizer.end_of_text()} : tokens;
}

// What is not seen of a prompt is told rather than left to be noticed.
void tell_cut(const Writer& writer, int64_t prompt, int64_t count) {
  int64_t kept = kept_prompt(prompt, count, writer.context);
  if (kept < prompt && writer.prints)
    print_to_stderr(
        fmt::format("note: the prompt has {} tokens; of the model's context of {}, {} are left for it beside those to "
                    "generate: its last {} are seen\n",
                    prompt, writer.context, kept, kept));
}

std::string format_rate(int64_t tokens, double seconds) {
  return fmt::format("{} token{} in {:.2f} s: {:.1f} tokens/s\n", tokens, tokens == 1 ? "" : "s", seconds,
                     seconds > 0 ? double(tokens) / seconds : 0);
}

std::vector<std::string> stop_strings(const GenerateArguments& arguments) {
  std::vector<std::string> strings;
  for (const std::string& typed : arguments.stop) strings.push_back(typed_string(typed));
  return strings;
}

// Side by side; each is over when all are.
void write_texts(const Writer& writer, std::vector<Completion>& texts, std::span<const int64_t> seeds,
                 const GenerateArguments& arguments) {
  std::vector<GenerationRow> rows;
  std::vector<double> seconds(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    rows.push_back({prompt_tokens(writer.tokenizer, texts[i].prompt()), seeds[i]});
    tell_cut(writer, int64_t(rows.back().prompt.size()), arguments.tokens);
  }
  auto begin = Completion::Clock::now();
  auto since_begin = [&] { return std::chrono::duration<double>(Completion::Clock::now() - begin).count(); };
  writer.generator.generate(rows, arguments.tokens, sampling_of(arguments), [&](size_t row, int32_t token) {
    seconds[row] = since_begin();
    return texts[row].add(token, writer.generator.log_probability(row));
  });
  int64_t tokens = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (writer.prints) texts[i].end();
    tokens += int64_t(texts[i].num_tokens());
    if (!writer.prints || !arguments.json) continue;
    auto length = int64_t(rows[i].prompt.size());
    fmt::print("{}\n", texts[i].json(length, kept_prompt(length, arguments.tokens, writer.context),
                                     arguments.log_probabilities, seconds[i]));
  }
  if (arguments.rate && writer.prints) print_to_stderr(format_rate(tokens, since_begin()));
}

// A single text is printed as it comes, several when all of them are there; by one of all ranks.
void print_texts(const Writer& writer, std::span<const Text> wanted, const GenerateArguments& arguments) {
  std::vector<Completion> texts;
  std::vector<int64_t> seeds;
  for (const Text& text : wanted) {
    texts.emplace_back(writer.tokenizer, text.prompt, text.seed, stop_strings(arguments));
    seeds.push_back(text.seed);
  }
  bool streams = texts.size() == 1 && writer.prints && !arguments.json;
  if (streams) texts[0].stream(true);
  write_texts(writer, texts, seeds, arguments);
  if (streams || !writer.prints || arguments.json) return;
  for (size_t i = 0; i < texts.size(); ++i)
    fmt::print("{}{}{}\n", i > 0 ? "---\n" : "", shown_text(texts[i].prompt()), shown_text(texts[i].text()));
}

// Of what a line may set while the program runs.
bool may_be_set(std::string_view key) {
  constexpr std::string_view kKeys[] = {"tokens", "temperature",        "top_k", "top_p",
                                        "min_p",  "repetition_penalty", "stop",  "seed"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

void set_option(GenerateArguments& arguments, const std::string& setting) {
  std::string key = setting.substr(0, setting.find('='));
  std::ranges::replace(key, '-', '_');
  if (!may_be_set(key))
    user_error(
        "[/set] expected tokens, temperature, top_k, top_p, min_p, repetition_penalty, stop or seed, as in /set "
        "temperature=0.5, got '{}'",
        key);
  std::vector<std::string> options = {"--" + setting};
  GenerateArguments changed = arguments;
  read_options(fields_of(changed), options);
  arguments = changed;
}

// Each answer is printed as it comes, and with its seed one on, so that /again gives another one.
void converse(const Writer& writer, GenerateArguments arguments) {
  PromptLoop loop([&](const std::string& setting) { set_option(arguments, setting); });
  loop.run([&](const std::string& text) {
    std::vector<Completion> texts;
    texts.emplace_back(writer.tokenizer, text, arguments.seed, stop_strings(arguments));
    texts[0].stream(false);
    write_texts(writer, texts, std::array{arguments.seed}, arguments);
    ++arguments.seed;
    return texts[0].text();
  });
}

void validate(const GenerateArguments& a) {
  if (a.log_probabilities && !a.json)
    user_error("[log-probabilities] expected --json, which has them, got plain text; add --json");
  if (!a.interactive) return;
  const char* other = a.json               ? "json"
                      : !a.prompt.empty()  ? "prompt"
                      : !a.prompts.empty() ? "prompts"
                      : a.samples > 1      ? "samples"
                      : a.mesh.tensor > 1  ? "mesh.tensor"
                                           : nullptr;
  if (other) user_error("[interactive] expected it without --{0}, got both; leave one out", other);
}

int run_generate(const GenerateArguments& arguments) {
  std::jthread begins = begin_alone({.tensor = arguments.mesh.tensor}, arguments.device);
  OpenedModel model;
  TokenizerPointer tokenizer;
  TaskQueue beside;  // a large vocabulary takes as long as the model; last, for its tasks use the others
  beside.submit([&] { tokenizer = open_tokenizer(arguments); });
  model = open_model(arguments.run, arguments.weights, arguments.mesh, arguments.compile);
  model.config.threads = arguments.threads;
  model.config.device = arguments.device;
  std::vector<Text> texts = texts_to_generate(arguments);
  beside.submit([&] { tokenizer = require_tokenizer(tokenizer, arguments, model); });
  if (arguments.mesh.tensor > 1) beside.wait();  // ranks may be threads
  use_model(model.config, [&](const RankContext& rank, const Platform& platform) {
    auto rows = std::min(size_t(arguments.rows), texts.size());
    Generator generator(resolve(rank.config, platform.target), platform, *rank.machine.backend, int64_t(rows), nullptr,
                        0, rank.ranks);
    load_parameters(model.checkpoint, generator.weights());
    if (!rank.ranks) beside.wait();
    Writer writer{generator, *tokenizer, rank.config.model.context, leads(rank.ranks)};
    if (arguments.interactive) return converse(writer, arguments);
    for (size_t first = 0; first < texts.size(); first += rows) {
      if (first > 0 && writer.prints && !arguments.json) fmt::print("---\n");
      print_texts(writer, std::span(texts).subspan(first, std::min(rows, texts.size() - first)), arguments);
    }
  });
  return 0;
}

}  // namespace

Command generate_command() {
  return make_command<GenerateArguments>("generate", "sample text from a checkpoint",
                                         "  tokamak generate run --prompt=\"In the beginning\" --tokens=100\n"
                                         "  tokamak generate run --interactive --stop='\\n\\n'\n"
                                         "  tokamak generate run --prompts=questions.txt --samples=4 --json",
                                         run_generate);
}

}  // namespace tokamak
