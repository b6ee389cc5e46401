// `tokamak prepare`: text to token shards.
#include "data/prepare.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "cli/commands.h"

namespace tokamak {

namespace {

struct PrepareArguments {
  std::vector<std::string> inputs;
  std::string out = "data";
  std::string vocab;
  int64_t vocab_size = PrepareOptions().vocab_size;
  std::string format = "auto";
  std::string field = "text";
  double val_fraction = PrepareOptions().val_fraction;
  int64_t shard_tokens = PrepareOptions().shard_tokens;
};

void visit(FieldList& v, PrepareArguments& c) {
  v.positional("input", c.inputs, "files, folders, patterns such as data/*.jsonl, or - for standard input");
  v("out", c.out, "folder for the shards, their index and the tokenizer");
  v("vocab", c.vocab,
    "tokenizer: folder with tokenizer.json or vocab.bpe and encoder.json, or FILE.tiktoken (FILE@cl100k for other "
    "names); empty: train one");
  v("vocab_size", c.vocab_size, "tokens of the tokenizer that is trained", at_least(1));
  v("format", c.format, "auto goes by the file's name; a text file is one document, so is each line of JSONL",
    one_of({"auto", "text", "jsonl"}));
  v("field", c.field, "field of a JSONL line that holds the text");
  v("val_fraction", c.val_fraction, "part of the tokens that goes to validation, from the end", from_up_to(0, 1));
  v("shard_tokens", c.shard_tokens, "tokens in one shard at most", at_least(1));
}

/// Progress on standard error: one line that is rewritten on a terminal, a line for each phase in a log.
class ProgressLine {
 public:
  ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (terminal_) fmt::print(stderr, "\r\x1b[K");
  }

  void show(const PrepareProgress& progress) {
    bool new_phase = progress.phase != phase_;
    auto now = std::chrono::steady_clock::now();
    if (!new_phase && (!terminal_ || now - shown_ < std::chrono::milliseconds(100))) return;
    phase_ = progress.phase;
    shown_ = now;
    std::string share = progress.total > 0 ? fmt::format(" {}%", progress.done * 100 / progress.total) : "";
    if (terminal_) {
      fmt::print(stderr, "\r\x1b[K{}{}", phase_, share);
      std::fflush(stderr);
    } else {
      fmt::print(stderr, "{}\n", phase_);
    }
  }

 private:
  bool terminal_;
  std::string phase_;
  std::chrono::steady_clock::time_point shown_;
};

void print_split(const char* name, const SplitIndex& split) {
  fmt::print("  {:<6}{:>14} tokens {:>10} documents {:>15} bytes of text {:>6} shard{}\n", name, split.tokens(),
             split.documents, split.text_bytes, split.shards.size(), split.shards.size() == 1 ? "" : "s");
}

int run_prepare(const PrepareArguments& arguments) {
  PrepareOptions options;
  options.inputs = arguments.inputs;
  options.sources = {.format = arguments.format, .text_field = arguments.field};
  options.out = arguments.out;
  options.vocab = arguments.vocab;
  options.vocab_size = arguments.vocab_size;
  options.val_fraction = arguments.val_fraction;
  options.shard_tokens = arguments.shard_tokens;
  ShardIndex index;
  {
    ProgressLine line;
    index = prepare(options, [&](const PrepareProgress& progress) { line.show(progress); });
  }
  bool trained = arguments.vocab.empty();
  fmt::print("{}: vocabulary of {} ({})\n", arguments.out, index.vocab_size, trained ? "trained" : arguments.vocab);
  print_split("train", index.train);
  print_split("val", index.val);
  int64_t tokens = index.train.tokens() + index.val.tokens();
  fmt::print("  {:.3f} bytes of text per token\n",
             double(index.train.text_bytes + index.val.text_bytes) / double(tokens));
  if (trained && index.vocab_size < arguments.vocab_size)
    fmt::print("  The vocabulary is smaller than the {} asked for: no pair of tokens is left that occurs twice.\n",
               arguments.vocab_size);
  return 0;
}

}  // namespace

Command prepare_command() {
  return make_command<PrepareArguments>("prepare",
                                        "turn text into token shards; trains a tokenizer where none is given",
                                        "  tokamak prepare book.txt --out=data --vocab-size=4096\n"
                                        "  tokamak prepare corpus/ more.jsonl --field=body --vocab=gpt2 --out=data",
                                        run_prepare);
}

}  // namespace tokamak
