// `tokamak data ledger`: what a run was trained on, step by step, and the proof that every sample was used as often as
// it should.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "cli/commands.h"
#include "cli/format_time.h"
#include "cli/progress_line.h"
#include "cli/quote.h"
#include "cli/streams.h"
#include "config/config.h"
#include "config/json.h"
#include "data/corpus.h"
#include "data/ledger.h"
#include "data/marked_tokens.h"
#include "data/open_consistently.h"

namespace tokamak {

namespace {

using nlohmann::ordered_json;

struct LedgerArguments {
  std::string run = "run";
  int64_t step = 0;
  int64_t sample = -1;
  int64_t tokens = 32;
  bool verify = true;
  int64_t max_count = UseOptions().most_counted;
  bool json = false;
};

void visit(FieldList& v, LedgerArguments& c) {
  v.positional("run", c.run, "run folder (train.out)", false);
  v("step", c.step, "show the samples of this optimizer step, counted from 1 as in metrics.jsonl; 0: none",
    at_least(0));
  v("sample", c.sample, "show the sample of this number, counted from 0; -1: none", at_least(-1));
  v("tokens", c.tokens, "tokens of each shown sample to decode", at_least(0));
  v("verify", c.verify, "count the uses of every window, and compare files with what they were");
  v("max_count", c.max_count, "samples to count at most, in all passes over the windows", at_least(1));
  v("json", c.json, "print one JSON object, for programs");
}

/// All that the files of a run say, replayed.
struct OpenedLedger {
  DataRecord record;
  Ledger ledger;
};

SavedState saved_state(const FoundCheckpoint& found) {
  SavedState saved{.step = found.state.step, .sample = found.state.data_position, .ledger = found.state.ledger};
  if (!found.state.data_json.empty())
    saved.order = order_checksum(data_record_from_json(found.state.data_json, (found.path / "state.json").string()));
  return saved;
}

OpenedLedger open_ledger(const std::string& run) {
  OpenedLedger opened{.record = read_data_record(run), .ledger = {}};
  std::vector<LedgerLine> lines = read_ledger(run);
  std::vector<std::string> warnings;
  std::optional<FoundCheckpoint> found = find_checkpoint(run, &warnings);
  for (const std::string& warning : warnings) print_warning(warning);
  std::optional<SavedState> saved;
  if (found) saved = saved_state(*found);
  opened.ledger = replay_ledger(lines, opened.record, saved);
  return opened;
}

// --- one sample, or those of a step ---

/// The run's data, where it is still there and the same.
class Reader {
 public:
  Reader(const std::string& run, const DataRecord& record) {
    std::string path = (std::filesystem::path(run) / "config.json").string();
    RunConfig config = run_config_from_json(read_file(path), path);
    try {
      tokenizer_ = load_run_tokenizer(run, config.data);
      corpus_ = open_consistently(config.data, [&] {
        std::optional<Corpus> corpus = open_training_data(config, tokenizer_, &record);
        require_same_data(record, corpus->record(), run);
        return corpus;
      });
    } catch (const UserError& error) {
      print_warning(fmt::format("only the numbers of windows can be shown: {}", error.what()));
    }
  }

  std::vector<FileRange> place(const SamplePlace& place) const {
    return corpus_ ? reader(place)->place(place.window) : std::vector<FileRange>();
  }

  /// The first tokens of the window, decoded; or their ids without a tokenizer.
  std::string beginning(const SamplePlace& place, int64_t tokens) const {
    if (!corpus_ || tokens == 0) return "";
    std::vector<int32_t> window(size_t(corpus_->context()) + 1);
    reader(place)->read(place.window, window);
    remove_marks(window);
    window.resize(std::min(window.size(), size_t(tokens)));
    return tokenizer_ ? tokenizer_->decode(window) : format_json(ordered_json(window));
  }

 private:
  std::unique_ptr<WindowReader> reader(const SamplePlace& place) const {
    return corpus_->datasets()[size_t(place.dataset)]->reader();
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<Corpus> corpus_;
};

void print_sample(int64_t sample, const SamplePlace& place, const DatasetRecord& dataset, const Reader& reader,
                  int64_t tokens) {
  fmt::print("  sample {}: {}, epoch {}, window {}\n", sample, printable(dataset.path), place.epoch + 1, place.window);
  for (const FileRange& range : reader.place(place))
    fmt::print("    {}, {} {} to {}\n", printable(range.path), dataset.kind == "text" ? "bytes" : "tokens", range.begin,
               range.begin + range.length - 1);
  if (std::string text = reader.beginning(place, tokens); !text.empty()) fmt::print("    {}\n", quote(text));
}

ordered_json sample_json(int64_t sample, const SamplePlace& place, const DatasetRecord& dataset, const Reader& reader,
                         int64_t tokens) {
  ordered_json json = {
      {"sample", sample}, {"dataset", dataset.path}, {"epoch", place.epoch + 1}, {"window", place.window}};
  for (const FileRange& range : reader.place(place))
    json["files"].push_back({{"path", range.path},
                             {"unit", dataset.kind == "text" ? "bytes" : "tokens"},
                             {"begin", range.begin},
                             {"length", range.length}});
  if (std::string text = reader.beginning(place, tokens); !text.empty()) json["beginning"] = text;
  return json;
}

/// The samples [first, end) and the step that used them.
void show_samples(const LedgerArguments& arguments, const OpenedLedger& opened, int64_t step, int64_t first,
                  int64_t end) {
  Reader reader(arguments.run, opened.record);
  SampleOrder order = opened.record.order();
  ordered_json json = {{"step", step}, {"samples", ordered_json::array()}};
  if (!arguments.json) fmt::print("step {}:\n", step);
  for (int64_t sample = first; sample < end; ++sample) {
    SamplePlace place = order.at(sample);
    const DatasetRecord& dataset = opened.record.datasets[size_t(place.dataset)];
    if (arguments.json)
      json["samples"].push_back(sample_json(sample, place, dataset, reader, arguments.tokens));
    else
      print_sample(sample, place, dataset, reader, arguments.tokens);
  }
  if (arguments.json) fmt::print("{}\n", printable(format_json(json)));
}

void show_step(const LedgerArguments& arguments, const OpenedLedger& opened) {
  const LedgerSegment* segment = opened.ledger.segment_of_step(arguments.step - 1);
  if (!segment)
    user_error("[--step] expected a step from 1 to {}, which led to the present state of {}, got {}",
               opened.ledger.steps(), arguments.run, arguments.step);
  int64_t first = segment->first_sample + (arguments.step - 1 - segment->first_step) * segment->samples_per_step;
  show_samples(arguments, opened, arguments.step, first, first + segment->samples_per_step);
}

void show_sample(const LedgerArguments& arguments, const OpenedLedger& opened) {
  const LedgerSegment* segment = opened.ledger.segment_of_sample(arguments.sample);
  if (!segment)
    user_error("[--sample] expected a sample from 0 to {}, which led to the present state of {}, got {}",
               opened.ledger.end_sample() - 1, arguments.run, arguments.sample);
  int64_t step = segment->first_step + (arguments.sample - segment->first_sample) / segment->samples_per_step;
  show_samples(arguments, opened, step + 1, arguments.sample, arguments.sample + 1);
}

// --- the whole run ---

/// What was found, and what is wrong with it.
struct Verdict {
  std::vector<DatasetUse> uses;  // empty without --verify, and where lines or data.json are wrong: what they say that
                                 // was used may be anything, and without end
  std::vector<FileState> files;
  std::vector<std::string> problems;
};

Verdict judge(const LedgerArguments& arguments, const OpenedLedger& opened) {
  Verdict verdict{.uses = {}, .files = {}, .problems = opened.ledger.problems};
  if (!arguments.verify) return verdict;
  for (std::string& problem : windows_beyond_files(opened.record)) verdict.problems.push_back(std::move(problem));
  if (verdict.problems.empty()) {
    ProgressLine line;
    auto progress = [&](int64_t done, int64_t total) { line.show("counting samples", done, total); };
    verdict.uses =
        count_uses(opened.ledger, opened.record, {.most_counted = arguments.max_count, .progress = progress});
  }
  for (size_t i = 0; i < verdict.uses.size(); ++i)
    if (!verdict.uses[i].problem.empty())
      verdict.problems.push_back(opened.record.datasets[i].path + ": " + verdict.uses[i].problem);
  verdict.files = compare_files(opened.record);
  for (const FileState& file : verdict.files)
    if (!file.problem.empty()) verdict.problems.push_back(file.was.path + ": " + file.problem);
  return verdict;
}

void print_history(const Ledger& ledger, const DataRecord& record) {
  fmt::print("{} steps, {} samples of {} tokens, {} start{}, {}\n", ledger.steps(), ledger.samples(), record.context,
             ledger.starts, ledger.starts == 1 ? "" : "s",
             ledger.ended ? "ended as it should" : "running or interrupted");
  for (const LedgerSegment& segment : ledger.segments)
    fmt::print("  steps {} to {}: samples {} to {}, {} a step, started {}\n", segment.first_step + 1, segment.end_step,
               segment.first_sample, segment.end_sample() - 1, segment.samples_per_step, format_time(segment.started));
  for (const LostSteps& lost : ledger.lost)
    fmt::print("  steps {} to {} were done, not saved, and lost; they do not count\n", lost.first_step + 1,
               lost.end_step);
}

void print_uses(const Verdict& verdict, const DataRecord& record) {
  if (verdict.uses.empty()) return;
  fmt::print("\n{:<32} {:<9}{:>12}{:>12}{:>10}  {}\n", "dataset", "kind", "windows", "samples", "epochs",
             "uses of a window");
  for (size_t i = 0; i < verdict.uses.size(); ++i) {
    const DatasetUse& use = verdict.uses[i];
    std::string range = use.least == use.most
                            ? fmt::format("{}", use.most)
                            : fmt::format("{} ({} of them) or {} ({})", use.least, use.at_least, use.most, use.at_most);
    fmt::print("{:<32} {:<9}{:>12}{:>12}{:>10.3f}  {}: {}\n", printable(record.datasets[i].path),
               printable(record.datasets[i].kind), use.windows, use.samples, use.epochs(), range,
               use.problem.empty() ? "PROVEN" : "WRONG");
  }
}

void print_files(const Verdict& verdict) {
  if (verdict.files.empty()) return;
  auto count = [&](auto what) { return std::count_if(verdict.files.begin(), verdict.files.end(), what); };
  int64_t gone = count([](const FileState& file) { return !file.found; });
  int64_t changed = count([](const FileState& file) { return !file.problem.empty(); });
  fmt::print("\nfiles: {} as the run used them, {} changed, {} not there (from this folder)\n",
             int64_t(verdict.files.size()) - gone - changed, changed, gone);
}

ordered_json to_json(const OpenedLedger& opened, const Verdict& verdict) {
  const Ledger& ledger = opened.ledger;
  ordered_json json = {
      {"steps", ledger.steps()},           {"samples", ledger.samples()},  {"context", opened.record.context},
      {"starts", ledger.starts},           {"ended", ledger.ended},        {"seed", opened.record.seed},
      {"segments", ordered_json::array()}, {"lost", ordered_json::array()}};
  for (const LedgerSegment& segment : ledger.segments)
    json["segments"].push_back({{"first_step", segment.first_step + 1},
                                {"last_step", segment.end_step},
                                {"first_sample", segment.first_sample},
                                {"samples_per_step", segment.samples_per_step},
                                {"time", segment.started}});
  for (const LostSteps& lost : ledger.lost)
    json["lost"].push_back({{"first_step", lost.first_step + 1}, {"last_step", lost.end_step}});
  for (size_t i = 0; i < verdict.uses.size(); ++i) {
    const DatasetUse& use = verdict.uses[i];
    json["datasets"].push_back({{"path", opened.record.datasets[i].path},
                                {"kind", opened.record.datasets[i].kind},
                                {"windows", use.windows},
                                {"samples", use.samples},
                                {"epochs", use.epochs()},
                                {"least_uses", use.least},
                                {"most_uses", use.most},
                                {"windows_used_least", use.at_least},
                                {"windows_used_most", use.at_most},
                                {"proven", use.problem.empty()}});
  }
  for (const FileState& file : verdict.files)
    json["files"].push_back(
        {{"path", file.was.path}, {"found", file.found}, {"same", file.found && file.problem.empty()}});
  json["problems"] = verdict.problems;
  return json;
}

void show_run(const LedgerArguments& arguments, const OpenedLedger& opened) {
  Verdict verdict = judge(arguments, opened);
  if (arguments.json) {
    fmt::print("{}\n", printable(format_json(to_json(opened, verdict))));
  } else {
    print_history(opened.ledger, opened.record);
    print_uses(verdict, opened.record);
    print_files(verdict);
    if (arguments.verify && verdict.uses.empty())
      fmt::print("\nuses of windows: not counted, as what is written down of them does not fit together\n");
    for (const std::string& problem : verdict.problems) fmt::print("WRONG: {}\n", printable(problem));
    if (arguments.verify && verdict.problems.empty() && opened.ledger.samples() > 0)
      fmt::print("PROVEN: samples 0 to {} were used once each, in this order and in no other\n",
                 opened.ledger.end_sample() - 1);
  }
  std::fflush(stdout);
  if (!verdict.problems.empty())
    user_error("[ledger] expected lines, counts and files of {} that fit together, got {} that do not: {}",
               arguments.run, verdict.problems.size(), verdict.problems.front());
}

int run_ledger(const LedgerArguments& arguments) {
  OpenedLedger opened = open_ledger(arguments.run);
  if (arguments.step > 0) show_step(arguments, opened);
  if (arguments.sample >= 0) show_sample(arguments, opened);
  if (arguments.step == 0 && arguments.sample < 0) show_run(arguments, opened);
  return 0;
}

}  // namespace

Command data_ledger_command() {
  return make_command<LedgerArguments>(
      "data ledger", "what a run was trained on, and the proof that every sample was used as often as stated",
      "Reads data.json, ledger.jsonl and the newest checkpoint of a run. The exit status is 1 when something does not\n"
      "fit.\n\n"
      "  tokamak data ledger run\n"
      "  tokamak data ledger run --step=100\n"
      "  tokamak data ledger run --sample=12345 --tokens=200",
      run_ledger);
}

}  // namespace tokamak
