#include "pages/ladder_part.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "pages/html.h"
#include "plan/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

using nlohmann::json;

double rate_of(const json& rung) { return rung.at("tokens_per_second").get<double>(); }

// What the planner expected: the same tokens in the predicted time.
double predicted_rate(const json& rung) {
  return rate_of(rung) * rung.at("ms").get<double>() / rung.at("predicted_ms").get<double>();
}

// Over the first rung, of a mesh over one rank; empty where neither was measured.
std::string speedup_of(const json& rung) {
  for (const char* key : {"speedup_over_first", "speedup_over_one"})
    if (rung.contains(key)) return fmt::format("{:.2f}x", rung.at(key).get<double>());
  return "";
}

std::string note_of(const json& rung) {
  if (rung.value("optional", false)) return "aside";
  if (!rung.value("changed", true)) return "same";
  return rung.value("kept", true) ? "" : "slower";
}

std::string table_row(const json& rung) {
  std::string name = escape_html(rung.at("name").get<std::string>());
  if (rung.contains("failure"))
    return fmt::format("<tr><td>{}</td><td class=\"text\" colspan=\"5\">{}</td></tr>\n", name,
                       escape_html(rung.at("failure").get<std::string>()));
  double ms = rung.at("ms").get<double>(), predicted = rung.at("predicted_ms").get<double>();
  return fmt::format(
      "<tr><td>{}</td><td>{:.2f}</td><td>{:.2f}</td><td>{:.0f}</td><td>{:.1f}%</td><td class=\"text\">{} "
      "{}</td></tr>\n",
      name, ms, predicted, rate_of(rung), 100 * rung.at("mfu").get<double>(), speedup_of(rung), note_of(rung));
}

std::string rungs_part(const json& rungs, const std::string& title, PageCharts& charts) {
  BarChart chart{.title = title, .unit = "tokens a second"};
  chart.sets = {{"measured", "--run0", {}}, {"predicted", "--run1", {}}};
  std::string rows;
  for (const json& rung : rungs) {
    rows += table_row(rung);
    if (rung.contains("failure")) continue;
    chart.rows.push_back(rung.at("name").get<std::string>());
    chart.values.push_back(fmt::format("{} tokens/s {}", format_count(rate_of(rung)), speedup_of(rung)));
    chart.sets[0].values.push_back(rate_of(rung));
    chart.sets[1].values.push_back(predicted_rate(rung));
  }
  std::string drawn = chart.rows.empty() ? "" : charts.add(chart);
  return fmt::format(
      "<h3>{}</h3>\n{}<div class=\"wide numbers\"><table><tr><th>rung</th><th>ms</th><th>predicted "
      "ms</th><th>tokens/s</th>"
      "<th>MFU</th><th class=\"text\"></th></tr>\n{}</table></div>\n",
      title, drawn, rows);
}

std::string part_of(const json& ladder, PageCharts& charts) {
  const json& machine = ladder.at("machine");
  std::string text = fmt::format(
      "<div class=\"part\"><h2>Speed ladder</h2>\n<p>{}, {}. Each rung adds its change to the last one that was kept; "
      "docs/performance.md says how it is measured.</p>\n",
      escape_html(machine.at("name").get<std::string>()), escape_html(ladder.at("date").get<std::string>()));
  text += rungs_part(ladder.at("rungs"), "One rank", charts);
  if (ladder.contains("meshes")) text += rungs_part(ladder.at("meshes"), "All ranks together", charts);
  return text + fmt::format("<pre style=\"white-space: normal\">{}</pre></div>\n",
                            command_html(ladder.at("command").get<std::string>()));
}

}  // namespace

std::string ladder_part(const std::filesystem::path& file, PageCharts& charts) {
  std::string text = read_file(file);
  json ladder = parse_json(text);
  try {
    if (!ladder.is_object())
      user_error("[report] expected the ladder.json of `tokamak ladder --out=FOLDER`, got {}{}", file.string(),
                 json_error(text));
    return part_of(ladder, charts);
  } catch (const json::exception& error) {
    user_error("[report] expected the ladder.json of `tokamak ladder --out=FOLDER`, got {}: {}", file.string(),
               error.what());
  }
}

}  // namespace tokamak
