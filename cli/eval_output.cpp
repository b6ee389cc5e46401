#include "cli/eval_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/printable.h"

namespace tokamak {
namespace {

using nlohmann::ordered_json;

std::string name_of(const Evaluation& evaluation) {
  size_t entries = evaluation.entries.size();
  return entries == 1 ? evaluation.entries.front().path : fmt::format("{} entries together", entries);
}

// What all reports of one call have, in the same order, as they were asked the same.
std::vector<TaskResult> results_of(const EvalReport& report) {
  std::vector<TaskResult> results = report.tasks;
  if (report.validation) {
    const Evaluation& v = *report.validation;
    TaskResult result{.name = report.split, .metrics = {{"loss", v.loss}, {"perplexity", v.perplexity}}};
    result.metrics.push_back({"bits_per_byte", v.bits_per_byte > 0 ? v.bits_per_byte : std::nan("")});
    results.push_back(result);
  }
  std::vector<Metric> averages = centred_averages(report.tasks);
  auto has_accuracy = [](const TaskResult& result) { return result.metrics[0].name == "accuracy"; };
  if (std::ranges::count_if(report.tasks, has_accuracy) > 1) results.push_back({.name = "mean", .metrics = averages});
  return results;
}

std::string cell_of(const Metric& metric) {
  if (std::isnan(metric.value)) return "-";
  if (metric.name == "tokens" || metric.name == "bytes") return fmt::format("{:.0f}", metric.value);
  std::string value =
      std::fabs(metric.value) < 1e6 ? fmt::format("{:.4f}", metric.value) : fmt::format("{:.4e}", metric.value);
  return metric.error > 0 ? fmt::format("{} +-{:.4f}", value, metric.error) : value;
}

using Row = std::vector<std::string>;

void print_rows(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

ordered_json json_of(const TaskResult& result) {
  ordered_json object = {{"kind", result.kind}};
  if (result.questions > 0) object["questions"] = result.questions;
  for (const Metric& metric : result.metrics) {
    object[metric.name] = number(metric.value);
    if (metric.error > 0) object[metric.name + "_error"] = metric.error;
  }
  return object;
}

ordered_json json_of(const Evaluation& v) {
  ordered_json object = {{"data", name_of(v)}, {"tokens", v.tokens}, {"loss", number(v.loss)}};
  object["perplexity"] = number(v.perplexity);
  if (v.bits_per_byte > 0) object["bits_per_byte"] = number(v.bits_per_byte);
  if (v.entries.size() > 1)
    for (const EntryLoss& entry : v.entries)
      object["entries"].push_back({{"path", entry.path}, {"loss", number(entry.loss)}, {"tokens", entry.tokens}});
  return object;
}

}  // namespace

void print_validation(const EvalReport& report) {
  const Evaluation& evaluation = *report.validation;
  fmt::print("{} (step {}), {} of {}: {} tokens\n", printable(report.path), report.step, report.split,
             printable(name_of(evaluation)), evaluation.tokens);
  fmt::print("loss {:.4f}  perplexity {:.3f}", evaluation.loss, evaluation.perplexity);
  if (evaluation.bits_per_byte > 0) fmt::print("  bits per byte {:.4f}", evaluation.bits_per_byte);
  fmt::print("\n");
  if (evaluation.entries.size() > 1)
    for (const EntryLoss& entry : evaluation.entries)
      fmt::print("  {}: loss {:.4f}, {} tokens\n", printable(entry.path), entry.loss, entry.tokens);
  if (!evaluation.unknown.empty()) fmt::print("{}\n", printable(evaluation.unknown));
}

void print_table(const std::vector<EvalReport>& reports) {
  std::vector<Row> rows = {{"task", "questions", "number"}};
  for (const EvalReport& report : reports)
    rows[0].push_back(printable(report.name) + (report.step > 0 ? fmt::format(" (step {})", report.step) : ""));
  std::vector<std::vector<TaskResult>> all;
  for (const EvalReport& report : reports) all.push_back(results_of(report));
  for (size_t t = 0; t < all[0].size(); ++t)
    for (size_t m = 0; m < all[0][t].metrics.size(); ++m) {
      const TaskResult& first = all[0][t];
      bool begins = m == 0;
      rows.push_back({begins ? printable(first.name) : "",
                      begins && first.questions > 0 ? std::to_string(first.questions) : "", first.metrics[m].name});
      for (const std::vector<TaskResult>& results : all) rows.back().push_back(cell_of(results[t].metrics[m]));
    }
  print_rows(rows);
}

void print_json(const EvalReport& report) {
  ordered_json object = {{"run", report.name}, {"checkpoint", report.path}, {"step", report.step}};
  if (report.validation) object[report.split] = json_of(*report.validation);
  for (const TaskResult& result : report.tasks) object["tasks"][result.name] = json_of(result);
  for (const Metric& metric : centred_averages(report.tasks)) object[metric.name] = metric.value;
  fmt::print("{}\n", format_json(object));
}

}  // namespace tokamak
