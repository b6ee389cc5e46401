// `tokamak data inspect`: counts, checksums and samples of data, and what of it is damaged.
#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/parallel.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/progress_line.h"
#include "cli/quote.h"
#include "data/inspect.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace {

using nlohmann::ordered_json;

struct InspectArguments {
  std::vector<std::string> paths;
  std::string tokenizer;
  std::string format = SourceOptions().format;
  std::string field = SourceOptions().text_field;
  std::string token_type = SourceOptions().token_type;
  int64_t samples = 3;
  int64_t tokens = 48;
  bool json = false;
  int64_t threads = 0;
};

void visit(FieldList& v, InspectArguments& c) {
  v.positional("path", c.paths, "folders made by `tokamak prepare`; files, folders or patterns of tokens or text");
  v("tokenizer", c.tokenizer, "folder with the tokenizer that decodes samples; empty: that of a prepared folder");
  v("format", c.format, "of files; auto: what their names say, or their content", one_of(source_format_choices()));
  v("field", c.field, "field of a JSON object that holds the text, or name of the dataset in HDF5");
  v("token_type", c.token_type, "of tokens in files that do not say it", one_of({"uint16", "uint32"}));
  v("samples", c.samples, "pieces of each path to show", at_least(0));
  v("tokens", c.tokens, "tokens of each sample", at_least(1));
  v("json", c.json, "print one JSON object per path, for programs");
  v("threads", c.threads, "CPU threads; 0: all", at_least(0));
}

/// A sample as text, or as ids without a tokenizer.
std::string show(const DataSample& sample, const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) return format_json(ordered_json(sample.ids));
  return quote(tokenizer->decode(sample.ids));
}

std::optional<Tokenizer> find_tokenizer(const InspectArguments& arguments, const std::string& path) {
  if (!arguments.tokenizer.empty()) return load_tokenizer(arguments.tokenizer);
  if (!is_prepared(path) || !has_tokenizer(path)) return std::nullopt;
  try {
    return load_tokenizer(path);
  } catch (const UserError&) {
    return std::nullopt;  // damaged: the report says so
  }
}

DataReport inspect(const InspectArguments& arguments, const std::string& path,
                   const std::optional<Tokenizer>& tokenizer) {
  ProgressLine line;
  auto progress = [&](int64_t done, int64_t total) { line.show("reading " + path, done, total); };
  if (is_prepared(path)) return inspect_folder(path, progress);
  SourceOptions options{.format = arguments.format, .text_field = arguments.field, .token_type = arguments.token_type};
  std::optional<int32_t> separator;
  if (tokenizer) separator = tokenizer->end_of_text();
  return inspect_files(path, options, separator, progress);
}

/// Of a report whose files have them: all documents, and what their lengths count.
LengthHistogram token_lengths(const DataReport& report) {
  LengthHistogram lengths;
  for (const char* split : {"train", "val", ""}) lengths.append(report.tokens(split).lengths());
  return lengths;
}

LengthHistogram text_lengths(const DataReport& report) {
  LengthHistogram lengths;
  for (const FileReport& file : report.files) lengths.append(file.documents);
  return lengths;
}

void print_lengths(const LengthHistogram& lengths, const char* unit) {
  if (lengths.documents == 0) return;
  fmt::print("  documents by {} (longest {}):\n", unit, lengths.longest);
  for (size_t bin = 0; bin < lengths.counts.size(); ++bin) {
    if (lengths.counts[bin] == 0) continue;
    int64_t least = int64_t(1) << bin;
    fmt::print("    {:>12} to {:<12} {:>12} {:>6.1f}%\n", least, 2 * least - 1, lengths.counts[bin],
               100.0 * double(lengths.counts[bin]) / double(lengths.documents));
  }
}

void print_split(const char* name, const SplitIndex& split) {
  int64_t tokens = split.tokens();
  std::string ratio =
      tokens > 0 ? fmt::format(" ({:.3f} per token)", double(split.text_bytes) / double(tokens)) : std::string();
  fmt::print("  {:<6}{:>14} tokens {:>10} documents {:>15} bytes of text{}\n", name, tokens, split.documents,
             split.text_bytes, ratio);
}

/// What was counted in a good file.
std::string describe(const FileReport& file) {
  std::string text;
  if (file.tokens.tokens() > 0 || file.seekable)
    text += fmt::format(", {} tokens{}{}, ids {} to {}", file.tokens.tokens(), file.stored_as.empty() ? "" : " as ",
                        file.stored_as, file.tokens.least(), file.tokens.most());
  if (int64_t unlearned = file.tokens.unlearned(); unlearned > 0)
    text += fmt::format(", {} of them learned", file.tokens.tokens() - unlearned);
  if (file.documents.documents > 0)
    text += fmt::format(", {} document{}", file.documents.documents, file.documents.documents == 1 ? "" : "s");
  if (file.text_bytes > 0) text += fmt::format(", {} bytes of text", file.text_bytes);
  if (!file.checksum.empty()) text += ", " + file.checksum;
  return text;
}

void print_file(const FileReport& file, const std::string& folder) {
  // A path is long: below the folder that was named, its end is enough.
  std::string name = printable(file.path.string());
  if (name.starts_with(folder + "/")) name.erase(0, folder.size() + 1);
  if (file.problem.empty())
    fmt::print("  {}: {}, {} bytes{}: {}\n", name, file.format, file.bytes, describe(file),
               file.good() ? "good" : "whole, but");
  else
    fmt::print("  {}: DAMAGED: {}\n", name, printable(file.problem));
  for (const std::string& note : file.notes) fmt::print("    {}\n", printable(note));
  if (!file.beginning.empty()) fmt::print("    begins {}\n", quote(file.beginning));
}

void print_text(const DataReport& report, const std::vector<DataSample>& samples,
                const std::optional<Tokenizer>& tokenizer) {
  if (report.index) {
    fmt::print("{}: vocabulary of {}, token {} ends a document\n", printable(report.path), report.index->vocab_size,
               report.index->end_of_text);
    print_split("train", report.index->train);
    print_split("val", report.index->val);
    if (!report.index->sealed)
      fmt::print(
          "  index.json is of an earlier version, without checksums of itself and of the tokenizer: damage of these\n"
          "  cannot be found; `tokamak prepare` makes an index with them\n");
  } else {
    fmt::print("{}: {} file{}\n", printable(report.path), report.files.size(), report.files.size() == 1 ? "" : "s");
  }
  for (const std::string& note : report.notes) fmt::print("  {}\n", printable(note));
  for (const FileReport& file : report.files) print_file(file, report.path);
  print_lengths(token_lengths(report), "tokens");
  print_lengths(text_lengths(report), "bytes");
  for (const DataSample& sample : samples)
    fmt::print("  {} from token {}: {}\n", printable(sample.path.filename().string()), sample.token,
               show(sample, tokenizer));
}

ordered_json to_json(const LengthHistogram& lengths) {
  ordered_json bins = ordered_json::array();
  for (size_t bin = 0; bin < lengths.counts.size(); ++bin)
    if (lengths.counts[bin] > 0) bins.push_back({{"from", int64_t(1) << bin}, {"documents", lengths.counts[bin]}});
  return {{"documents", lengths.documents}, {"longest", lengths.longest}, {"bins", bins}};
}

ordered_json to_json(const SplitIndex& split) {
  return {{"tokens", split.tokens()},
          {"documents", split.documents},
          {"text_bytes", split.text_bytes},
          {"shards", split.shards.size()}};
}

ordered_json to_json(const FileReport& file) {
  ordered_json json = {{"path", file.path.string()}, {"format", file.format}, {"bytes", file.bytes}};
  if (!file.split.empty()) json["split"] = file.split;
  if (!file.checksum.empty()) json["checksum"] = file.checksum;
  json["good"] = file.good();
  if (!file.notes.empty()) json["notes"] = file.notes;
  if (!file.problem.empty()) {
    json["problem"] = file.problem;
    return json;
  }
  if (file.tokens.tokens() > 0 || file.seekable) {
    json["tokens"] = file.tokens.tokens();
    if (file.tokens.unlearned() > 0) json["learned"] = file.tokens.tokens() - file.tokens.unlearned();
    if (!file.stored_as.empty()) json["stored_as"] = file.stored_as;
    json["least_token"] = file.tokens.least();
    json["most_token"] = file.tokens.most();
  }
  if (file.documents.documents > 0) json["document_lengths"] = to_json(file.documents);
  if (file.text_bytes > 0) json["text_bytes"] = file.text_bytes;
  if (!file.beginning.empty()) json["beginning"] = file.beginning;
  return json;
}

ordered_json to_json(const DataReport& report) {
  ordered_json json = {{"path", report.path}, {"damaged_files", report.damaged()}};
  if (!report.notes.empty()) json["notes"] = report.notes;
  if (!report.index) return json;
  json["vocab_size"] = report.index->vocab_size;
  json["end_of_text"] = report.index->end_of_text;
  json["index_has_checksum"] = report.index->sealed;
  for (const char* name : {"train", "val"}) {
    json[name] = to_json(name == std::string("train") ? report.index->train : report.index->val);
    json[name]["document_lengths"] = to_json(report.tokens(name).lengths());
  }
  return json;
}

void print_json(const DataReport& report, const std::vector<DataSample>& samples,
                const std::optional<Tokenizer>& tokenizer) {
  ordered_json json = to_json(report);
  for (const FileReport& file : report.files) json["files"].push_back(to_json(file));
  for (const DataSample& sample : samples) {
    ordered_json shown = {{"path", sample.path.string()}, {"token", sample.token}, {"ids", sample.ids}};
    if (tokenizer) shown["text"] = tokenizer->decode(sample.ids);
    json["samples"].push_back(shown);
  }
  fmt::print("{}\n", printable(format_json(json)));
}

int run_inspect(const InspectArguments& arguments) {
  if (arguments.threads > 0) set_num_threads(int(arguments.threads));
  int64_t files = 0, damaged = 0;
  for (const std::string& path : arguments.paths) {
    std::optional<Tokenizer> tokenizer = find_tokenizer(arguments, path);
    DataReport report = inspect(arguments, path, tokenizer);
    std::vector<DataSample> samples = sample_tokens(report, arguments.samples, arguments.tokens);
    (arguments.json ? print_json : print_text)(report, samples, tokenizer);
    files += int64_t(report.files.size());
    damaged += report.damaged();
  }
  std::fflush(stdout);
  if (damaged > 0)
    user_error("[inspect] expected {} good file{}, got {} damaged (named above); copy them again, or make them again",
               files, files == 1 ? "" : "s", damaged);
  return 0;
}

}  // namespace

Command data_inspect_command() {
  return make_command<InspectArguments>("data inspect",
                                        "counts, checksums and samples of data, and what of it is damaged",
                                        "Reads every byte. The exit status is 1 when something is damaged.\n\n"
                                        "  tokamak data inspect data\n"
                                        "  tokamak data inspect data --samples=10 --tokens=100\n"
                                        "  tokamak data inspect corpus/*.jsonl fineweb_*.bin --tokenizer=gpt2",
                                        run_inspect);
}

}  // namespace tokamak
