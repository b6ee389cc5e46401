// `tokamak data inspect`: counts, checksums and samples of data, and what of it is damaged.
#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parallel.h"
#include "cli/commands.h"
#include "cli/progress_line.h"
#include "data/inspect.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace {

using nlohmann::ordered_json;

struct InspectArguments {
  std::vector<std::string> paths;
  std::string tokenizer;
  int64_t samples = 3;
  int64_t tokens = 48;
  bool json = false;
  int64_t threads = 0;
};

void visit(FieldList& v, InspectArguments& c) {
  v.positional("path", c.paths, "folders made by `tokamak prepare`");
  v("tokenizer", c.tokenizer, "folder with the tokenizer that decodes samples; empty: that of a prepared folder");
  v("samples", c.samples, "pieces of each path to show", at_least(0));
  v("tokens", c.tokens, "tokens of each sample", at_least(1));
  v("json", c.json, "print one JSON object per path, for programs");
  v("threads", c.threads, "CPU threads; 0: all", at_least(0));
}

/// Text on one line, as JSON quotes it; bytes that are no UTF-8 show as U+FFFD.
std::string quote(const std::string& text) {
  return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// A sample as text, or as ids without a tokenizer.
std::string show(const DataSample& sample, const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) return ordered_json(sample.ids).dump();
  return quote(tokenizer->decode(sample.ids));
}

std::optional<Tokenizer> find_tokenizer(const InspectArguments& arguments, const DataReport& report) {
  if (!arguments.tokenizer.empty()) return load_tokenizer(arguments.tokenizer);
  if (report.index && has_tokenizer(report.path)) return load_tokenizer(report.path);
  return std::nullopt;
}

void print_lengths(const LengthHistogram& lengths) {
  if (lengths.documents == 0) return;
  fmt::print("  documents by tokens (longest {}):\n", lengths.longest);
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

void print_file(const FileReport& file) {
  std::string name = file.path.filename().string();
  if (file.problem.empty())
    fmt::print("  {:<24}{:>12} tokens, ids {} to {}, {}: good\n", name, file.tokens.tokens(), file.tokens.least(),
               file.tokens.most(), file.checksum);
  else
    fmt::print("  {:<24}DAMAGED: {}\n", name, file.problem);
}

void print_text(const DataReport& report, const std::vector<DataSample>& samples,
                const std::optional<Tokenizer>& tokenizer) {
  fmt::print("{}: vocabulary of {}, token {} ends a document\n", report.path, report.index->vocab_size,
             report.index->end_of_text);
  print_split("train", report.index->train);
  print_split("val", report.index->val);
  for (const FileReport& file : report.files) print_file(file);
  LengthHistogram lengths = report.tokens("train").lengths();
  lengths.append(report.tokens("val").lengths());
  print_lengths(lengths);
  for (const DataSample& sample : samples)
    fmt::print("  {} from token {}: {}\n", sample.path.filename().string(), sample.token, show(sample, tokenizer));
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
  json["good"] = file.problem.empty();
  if (!file.problem.empty()) {
    json["problem"] = file.problem;
    return json;
  }
  json["tokens"] = file.tokens.tokens();
  json["least_token"] = file.tokens.least();
  json["most_token"] = file.tokens.most();
  return json;
}

void print_json(const DataReport& report, const std::vector<DataSample>& samples,
                const std::optional<Tokenizer>& tokenizer) {
  ordered_json json = {{"path", report.path}, {"damaged_files", report.damaged()}};
  json["vocab_size"] = report.index->vocab_size;
  json["end_of_text"] = report.index->end_of_text;
  for (const char* name : {"train", "val"}) {
    json[name] = to_json(name == std::string("train") ? report.index->train : report.index->val);
    json[name]["document_lengths"] = to_json(report.tokens(name).lengths());
  }
  for (const FileReport& file : report.files) json["files"].push_back(to_json(file));
  for (const DataSample& sample : samples) {
    ordered_json shown = {{"path", sample.path.string()}, {"token", sample.token}, {"ids", sample.ids}};
    if (tokenizer) shown["text"] = tokenizer->decode(sample.ids);
    json["samples"].push_back(shown);
  }
  fmt::print("{}\n", json.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

int run_inspect(const InspectArguments& arguments) {
  if (arguments.threads > 0) set_num_threads(int(arguments.threads));
  int64_t files = 0, damaged = 0;
  for (const std::string& path : arguments.paths) {
    DataReport report;
    {
      ProgressLine line;
      report = inspect_folder(path, [&](int64_t done, int64_t total) { line.show("reading " + path, done, total); });
    }
    std::optional<Tokenizer> tokenizer = find_tokenizer(arguments, report);
    std::vector<DataSample> samples = sample_tokens(report, arguments.samples, arguments.tokens);
    (arguments.json ? print_json : print_text)(report, samples, tokenizer);
    files += int64_t(report.files.size());
    damaged += report.damaged();
  }
  std::fflush(stdout);
  if (damaged > 0)
    user_error(
        "[inspect] expected {} good file{}, got {} damaged (named above); copy them again or run `prepare` again",
        files, files == 1 ? "" : "s", damaged);
  return 0;
}

}  // namespace

Command data_inspect_command() {
  return make_command<InspectArguments>("data inspect",
                                        "counts, checksums and samples of data, and what of it is damaged",
                                        "Reads every byte. The exit status is 1 when something is damaged.\n\n"
                                        "  tokamak data inspect data\n"
                                        "  tokamak data inspect data --samples=10 --tokens=100",
                                        run_inspect);
}

}  // namespace tokamak
