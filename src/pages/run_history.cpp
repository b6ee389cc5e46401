#include "pages/run_history.h"

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

using nlohmann::ordered_json;

/// Of a step's line, in metrics.jsonl and on the page, and what it is multiplied by.
struct Column {
  const char *key, *name;
  double factor = 1;
};
constexpr Column kColumns[] = {{"loss", "loss"},
                               {"grad_norm", "gradient_norm"},
                               {"lr", "learning_rate"},
                               {"tokens_per_second", "tokens_per_second"},
                               {"mfu", "mfu", 100},
                               {"ms", "step_ms"},
                               {"data_wait_ms", "data_wait"},  // becomes a share of the step
                               {"memory_mib", "memory"},
                               {"loss_scale", "loss_scale"}};
constexpr size_t kNumColumns = std::size(kColumns), kTokensPerSecond = 3, kMs = 5, kWait = 6;

/// A mean of steps, as far as they are finite.
struct Bucket {
  double step = 0, tokens = 0, hours = 0;
  double sums[kNumColumns] = {};
  int64_t counts[kNumColumns] = {};
  int64_t steps = 0;
};

double number(const ordered_json& line, const char* key) {
  auto at = line.find(key);
  return at != line.end() && at->is_number() ? at->get<double>() : std::nan("");
}

void for_each_object(const fs::path& file, const std::function<void(const ordered_json&)>& take) {
  if (std::error_code absent; !fs::exists(file, absent)) return;
  std::string text = read_file(file, kLargeFile);
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    if (ordered_json line = parse_ordered_json(std::string_view(text).substr(begin, end - begin)); line.is_object())
      take(line);
}

/// Goes through the steps of metrics.jsonl; buckets hold twice as many steps each time that there are too many of them.
class HistoryReader {
 public:
  HistoryReader(RunHistory& history, size_t points) : history_(history), points_(points) {}

  void take(const ordered_json& line) {
    double step = number(line, "step");
    if (!(step > last_.step)) return;  // a line that came twice
    double values[kNumColumns];
    for (size_t i = 0; i < kNumColumns; ++i) values[i] = number(line, kColumns[i].key) * kColumns[i].factor;
    double seconds = std::isfinite(values[kMs]) ? values[kMs] * 1e-3 : 0;
    if (std::isfinite(values[kTokensPerSecond])) last_.tokens += values[kTokensPerSecond] * seconds;
    last_.hours += seconds / 3600;
    last_.step = step;
    values[kWait] = 100 * values[kWait] / values[kMs];
    add(values);
    add_evaluations(line);
  }

  void finish() {
    history_.steps = int64_t(last_.step);
    for (const Column& column : kColumns) history_.training.series.push_back({column.name, {}});
    for (const Bucket& bucket : buckets_) {
      history_.training.step.push_back(bucket.step);
      history_.training.tokens.push_back(bucket.tokens);
      history_.training.hours.push_back(bucket.hours);
      for (size_t i = 0; i < kNumColumns; ++i)
        history_.training.series[i].values.push_back(bucket.counts[i] > 0 ? bucket.sums[i] / double(bucket.counts[i])
                                                                          : std::nan(""));
    }
  }

 private:
  void add(const double (&values)[kNumColumns]) {
    if (buckets_.empty() || buckets_.back().steps >= per_bucket_) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    for (size_t i = 0; i < kNumColumns; ++i) {
      if (!std::isfinite(values[i])) continue;
      bucket.sums[i] += values[i];
      ++bucket.counts[i];
    }
    ++bucket.steps;
    bucket.step = last_.step, bucket.tokens = last_.tokens, bucket.hours = last_.hours;
    if (buckets_.size() > 2 * points_) halve();
  }

  void halve() {
    for (size_t i = 0; i < buckets_.size(); i += 2) {
      Bucket joined = buckets_[i];
      if (i + 1 < buckets_.size()) {
        const Bucket& next = buckets_[i + 1];
        for (size_t c = 0; c < kNumColumns; ++c) joined.sums[c] += next.sums[c], joined.counts[c] += next.counts[c];
        joined.steps += next.steps;
        joined.step = next.step, joined.tokens = next.tokens, joined.hours = next.hours;
      }
      buckets_[i / 2] = joined;
    }
    buckets_.resize((buckets_.size() + 1) / 2);
    per_bucket_ *= 2;
  }

  void add_evaluations(const ordered_json& line) {
    std::map<std::string, double> told;
    if (line.contains("val_loss")) told["validation"] = number(line, "val_loss");
    if (auto shadow = line.find("shadow"); shadow != line.end() && shadow->is_object()) {
      told["shadow cosine"] = number(*shadow, "cosine");
      told["shadow least cosine"] = number(*shadow, "least");
      told["shadow saturated"] = number(*shadow, "saturated");
    }
    if (auto tasks = line.find("tasks"); tasks != line.end() && tasks->is_object())
      for (const auto& [task, numbers] : tasks->items())
        if (numbers.is_object())
          for (const auto& [name, value] : numbers.items())
            if (value.is_number()) told[task + " " + name] = value.get<double>();
    if (told.empty()) return;
    HistoryPoints& to = history_.evaluations;
    to.step.push_back(last_.step);
    to.tokens.push_back(last_.tokens);
    to.hours.push_back(last_.hours);
    for (const auto& [name, value] : told) {
      auto at = std::ranges::find(to.series, name, &HistorySeries::name);
      if (at == to.series.end()) at = to.series.insert(at, {name, {}});
      at->values.resize(to.step.size() - 1, std::nan(""));
      at->values.push_back(value);
    }
    for (HistorySeries& series : to.series) series.values.resize(to.step.size(), std::nan(""));
  }

  RunHistory& history_;
  size_t points_;
  std::vector<Bucket> buckets_;
  int64_t per_bucket_ = 1;
  Bucket last_;
};

void flatten(const ordered_json& value, const std::string& key, std::vector<std::pair<std::string, std::string>>& to) {
  if (value.is_object())
    for (const auto& [name, inner] : value.items()) flatten(inner, key.empty() ? name : key + "." + name, to);
  else
    to.emplace_back(key, value.is_string() ? value.get<std::string>() : format_json(value));
}

// Of steps that count: what a process wrote that was killed later comes again.
std::vector<HistorySample> read_samples(const fs::path& file, int64_t steps) {
  std::map<int64_t, std::string> samples;
  for_each_object(file, [&](const ordered_json& line) {
    double step = number(line, "step");
    auto text = line.find("text");
    if (step >= 0 && step <= double(steps) && text != line.end() && text->is_string())
      samples[int64_t(step)] = text->get<std::string>();
  });
  std::vector<HistorySample> all;
  for (auto& [step, text] : samples) all.push_back({step, std::move(text)});
  return all;
}

// Of a run that nothing trains until its last event: nobody knows when it was killed.
std::string goodput_until_now(const RunHistory& run) {
  if (run.events.empty()) return "";
  double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  Goodput all = goodput_of(run.events, run.is_training ? now : run.events.back().time);
  return all.step_seconds > 0 ? format_goodput(all) : "";
}

}  // namespace

RunHistory read_history(const fs::path& run, size_t points) {
  if (!fs::exists(run / "metrics.jsonl"))
    user_error("[report] expected the folder of a run, with metrics.jsonl, got none at {}; name what train.out says",
               run.string());
  RunHistory history{.name = run.string()};
  HistoryReader reader(history, std::max<size_t>(points, 1));
  for_each_object(run / "metrics.jsonl", [&](const ordered_json& line) { reader.take(line); });
  reader.finish();
  history.events = read_events(run);
  history.samples = read_samples(run / "samples.jsonl", history.steps);
  if (fs::exists(run / "config.json"))
    flatten(parse_ordered_json(read_file(run / "config.json", kLargeFile)), "", history.config);
  history.is_training = !lock_holder(run / "lock").empty();
  history.goodput = goodput_until_now(history);
  return history;
}

}  // namespace tokamak
