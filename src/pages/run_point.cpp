#include "pages/run_point.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "config/json.h"
#include "model/model.h"
#include "pages/run_history.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

std::optional<double> last_of(const HistoryPoints& points, const std::string& name, double share) {
  auto series = std::ranges::find(points.series, name, &HistorySeries::name);
  if (series == points.series.end()) return {};
  std::vector<double> known;
  for (double value : series->values)
    if (std::isfinite(value)) known.push_back(value);
  if (known.empty()) return {};
  size_t count = std::max<size_t>(1, size_t(share * double(known.size())));
  double sum = 0;
  for (size_t i = known.size() - count; i < known.size(); ++i) sum += known[i];
  return sum / double(count);
}

double number(const nlohmann::json& line, const char* key, const std::string& where) {
  auto at = line.find(key);
  if (at == line.end() || !at->is_number() || !(at->get<double>() > 0))
    user_error("[{}] expected \"{}\", a number above 0, got {}", where, key,
               at == line.end() ? "none" : format_json(*at));
  return at->get<double>();
}

}  // namespace

RunPoint read_run_point(const fs::path& run) {
  constexpr double kLastPart = 0.05;
  RunHistory history = read_history(run);
  RunPoint result;
  fs::path file = run / "config.json";
  result.config = run_config_from_json(read_file(file), file.string());
  if (result.config.model.vocab == 0)
    user_error("[{}] expected model.vocab, got 0; name a run that has trained", file.string());
  std::optional<double> loss = last_of(history.evaluations, "validation", 0);
  if (!loss) {
    loss = last_of(history.training, "loss", kLastPart);
    result.notes.push_back(
        fmt::format("{} has no validation loss: the mean of its last training losses stands for it", run.string()));
  }
  if (!loss || history.training.tokens.empty() || !(history.training.tokens.back() > 0))
    user_error("[{}] expected a run with losses and tokens in metrics.jsonl, got none; train it", run.string());
  result.point = {run.string(), {double(count_parameters(result.config.model)), history.training.tokens.back()}, *loss};
  if (history.is_training) result.notes.push_back(run.string() + " still trains");
  if (int64_t steps = result.config.train.steps; steps > history.steps)
    result.notes.push_back(
        fmt::format("{} ended after {} of {} steps: its learning rate has not come down, and its "
                    "loss neither",
                    run.string(), history.steps, steps));
  return result;
}

std::vector<RunPoint> read_run_points(const std::vector<std::string>& runs, std::vector<std::string>& notes) {
  std::vector<RunPoint> points;
  bool same_data = true;
  for (const std::string& run : runs) {
    points.push_back(read_run_point(run));
    const RunConfig &first = points.front().config, &last = points.back().config;
    if (first.model.vocab != last.model.vocab)
      user_error(
          "[scaling] expected runs of one tokenizer, got vocabularies of {} ({}) and {} ({}); name those whose losses "
          "can be compared",
          first.model.vocab, runs.front(), last.model.vocab, run);
    same_data = same_data && first.data.path == last.data.path;
    notes.insert(notes.end(), points.back().notes.begin(), points.back().notes.end());
  }
  if (!same_data)
    notes.emplace_back("the runs read data of different paths: only losses on the same data can be compared");
  return points;
}

std::vector<ScalingPoint> read_point_file(const fs::path& file) {
  std::vector<ScalingPoint> points;
  std::string text = read_file(file, kLargeFile);
  int64_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view one = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    std::string where = fmt::format("{}:{}", file.string(), ++line);
    if (one.find_first_not_of(" \t\r") == one.npos) continue;
    nlohmann::json json = parse_json(one);
    if (!json.is_object()) user_error("[{}] expected a JSON object, got no such{}", where, json_error(one));
    auto name = json.find("name");
    points.push_back({name != json.end() && name->is_string() ? name->get<std::string>() : fmt::format("line {}", line),
                      {number(json, "parameters", where), number(json, "tokens", where)},
                      number(json, "loss", where)});
  }
  return points;
}

}  // namespace tokamak
