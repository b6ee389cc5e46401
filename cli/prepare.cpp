// `tokamak prepare`: documents to token shards.
#include "data/prepare.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/progress_line.h"
#include "cli/quote.h"

namespace tokamak {

namespace {

// GPT-2 with 124M parameters, the default, learns next to nothing from fewer, in hours.
constexpr int64_t kFewTokens = 50'000'000;

struct PrepareArguments {
  PrepareOptions options;
  std::string out = options.out.string();
  std::string vocab;
  int64_t threads = 0;
};

void visit(FieldList& v, PrepareArguments& c) {
  PrepareOptions& o = c.options;
  v.positional("input", o.inputs,
               "files, folders, patterns such as 'data/**/*.jsonl', or - for standard input, in that order");
  v("out", c.out, "folder for the shards, their index and the tokenizer");
  v("vocab", c.vocab,
    "tokenizer: folder with tokenizer.json or vocab.bpe and encoder.json, or FILE.tiktoken (FILE@cl100k for other "
    "names); empty: train one");
  v("vocab_size", o.vocab_size, "tokens of the tokenizer that is trained", at_least(1));
  v("vocab_bytes", o.vocab_bytes, "text to train it on, from the beginning of each file; 0: all", at_least(0));
  v("format", o.sources.format, "what the files are; auto: what their names say, or their content",
    one_of(source_format_choices()));
  v("field", o.sources.text_field,
    "field of JSON objects, column of a table, of MDS or Parquet, or dataset of HDF5, that holds the text");
  v("chat", o.chat,
    "objects are conversations (messages, or prompt and completion), of which answers alone are learned, by this "
    "template: "
    "own (the tokenizer's), chatml, llama3; pairs: of prompt and completion alone; empty: their field is text",
    one_of({"", "own", "chatml", "llama3", "pairs"}));
  v("skip_bad", o.skip_bad, "pass over lines of JSONL without such a field, or uneven rows of CSV, and count them");
  v("split", o.split, "take only files whose names, or folders, say that they are of this split; empty: all",
    one_of({"", "train", "validation", "test"}));
  v("token_type", o.sources.token_type, "type of tokens in files that do not say", one_of({"uint16", "uint32"}));
  v("separator", o.sources.separator, "a marker such as <|endoftext|> between documents of one text file");
  v("members", o.sources.members, "which members of archives are documents, as patterns of their names");
  v("val_fraction", o.val_fraction, "part of the tokens that goes to validation", from_up_to(0, 1));
  v("val_split", o.val_split,
    "which part: documents drawn from all files, or the end; auto: drawn where that is 32 or more",
    one_of({"auto", "drawn", "end"}));
  v("val_seed", o.val_seed, "of what is drawn", at_least(0));
  v("shard_tokens", o.shard_tokens, "tokens in one shard at most", at_least(1));
  v("threads", c.threads, "threads that encode; 0: all cores", between(0, 1024));
}

/// A path as an entry of data.path, which stand between commas.
std::string as_list_item(std::string path) {
  for (size_t at = path.find(','); at != path.npos; at = path.find(',', at + 2)) path.insert(at, "\\");
  return path;
}

void print_table(const std::string& out, const TokenShardIndex& index) {
  fmt::print("  {:<6}{:>16}{:>14}{:>18}{:>8}{:>8}\n", "split", "tokens", "documents", "bytes of text", "shards",
             "files");
  auto row = [](const char* name, int64_t tokens, const SplitIndex& split) {
    fmt::print("  {:<6}{:>16}{:>14}{:>18}{:>8}{:>8}\n", name, tokens, split.documents, split.text_bytes,
               split.shards.size(), split.sources.size());
  };
  row("train", index.train.tokens(), index.train);
  row("val", index.val.tokens(), index.val);
  int64_t tokens = index.train.tokens() + index.val.tokens();
  int64_t bytes = index.train.text_bytes + index.val.text_bytes;
  fmt::print("  {:.3f} bytes of text per token; `tokamak data inspect {}` shows more\n", double(bytes) / double(tokens),
             shell_word(out));
}

// A size that would be ignored without a word.
void check_vocabulary(const PrepareArguments& arguments) {
  if (!arguments.vocab.empty() && arguments.options.vocab_size != PrepareOptions().vocab_size)
    user_error(
        "[prepare] expected --vocab, a tokenizer that has its size, or --vocab-size, for one that is trained; got both "
        "{} and {}; leave one of them out",
        arguments.vocab, arguments.options.vocab_size);
}

// Nothing when a signal ended it early.
std::optional<TokenShardIndex> prepare_with_progress(const PrepareOptions& options) {
  StopSignal stop("stopping; again to quit now\n");
  ProgressLine line;
  auto show = [&](const PrepareProgress& progress) {
    std::string phase(progress.phase);
    progress.files ? line.show(phase, progress.done, progress.total)
                   : line.show_bytes(phase, progress.done, progress.total);
  };
  try {
    return prepare(options, {.progress = show,
                             .note = [&](const std::string& note) { line.note(note); },
                             .stop = [&] { return stop.requested(); }});
  } catch (const UserError& error) {
    if (!stop.requested()) throw;
    line.note(error.what());
    return std::nullopt;
  }
}

int run_prepare(const PrepareArguments& arguments) {
  check_vocabulary(arguments);
  PrepareOptions options = arguments.options;
  options.out = arguments.out;
  options.vocab = arguments.vocab;
  options.threads = int(arguments.threads);
  std::optional<TokenShardIndex> prepared = prepare_with_progress(options);
  if (!prepared) return stopped_status();
  const TokenShardIndex& index = *prepared;
  bool trained = arguments.vocab.empty();
  fmt::print("{}: vocabulary of {} ({})\n", printable(arguments.out), index.vocab_size,
             trained ? "trained" : printable(arguments.vocab));
  print_table(arguments.out, index);
  if (trained && index.vocab_size < options.vocab_size)
    fmt::print("  The vocabulary is smaller than the {} asked for: no pair of tokens is left that occurs twice.\n",
               options.vocab_size);
  fmt::print("\nNext: tokamak train --data.path={}{}\n", shell_word(as_list_item(arguments.out)),
             index.train.tokens() < kFewTokens ? " --model.preset=small" : "");
  return 0;
}

std::string list_formats() {
  std::string list = "Formats, by --format, a file's name or its content; text may be compressed (.gz, .zst):\n";
  for (const SourceFormatInfo& format : source_formats())
    list += fmt::format("\n- {}: {}", format.name, format.description);
  return list;
}

std::string list_missing_formats() {
  std::string list;
  for (const SourceFormatInfo& format : source_formats())
    if (!format.missing.empty())
      list += fmt::format("{}  {} needs {}", list.empty() ? "Not in this build:\n" : "\n", format.name, format.missing);
  return list;
}

}  // namespace

Command prepare_command() {
  Command command = make_command<PrepareArguments>(
      "prepare", "turn documents into token shards; trains a tokenizer where none is given",
      "  tokamak prepare book.txt --out=data --vocab-size=4096\n"
      "  tokamak prepare corpus/ 'more/*.jsonl.zst' --field=body --vocab=gpt2 --out=data\n\n"
      "--vocab=gpt2 is a folder here: tokenizer.json of openai-community/gpt2 on Hugging Face's hub makes one.\n"
      "Inputs may be larger than memory. After Ctrl-C, a full disk or a crash the same command goes on from the last\n"
      "complete shard; the folder's earlier data stays in use until the new one is complete.\n\n" +
          list_formats(),
      run_prepare);
  command.build_notes = list_missing_formats();
  return command;
}

}  // namespace tokamak
