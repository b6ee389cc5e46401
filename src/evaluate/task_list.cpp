#include "evaluate/task_list.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>

namespace tokamak {
namespace {

using nlohmann::json;

constexpr int64_t kMostShots = 1000;

// A member of the line, or `otherwise` where there is none.
template <class T>
T member(const json& line, const char* name, T otherwise, const std::string& place) {
  if (!line.contains(name)) return otherwise;
  try {
    return line.at(name).get<T>();
  } catch (const json::exception&) {
    user_error("[eval] {}: expected {} in \"{}\", got {}", place, std::is_same_v<T, std::string> ? "text" : "a number",
               name, line.at(name).dump());
  }
}

TaskSpec spec_of(const json& line, const std::filesystem::path& folder, const std::string& place) {
  static const std::set<std::string> kKnown = {"name", "kind", "file", "shots", "chance", "delimiter"};
  for (const auto& item : line.items())
    if (!kKnown.contains(item.key()))
      user_error("[eval] {}: expected name, kind, file, shots, chance or delimiter, got \"{}\"", place, item.key());
  for (const char* name : {"kind", "file"})
    if (!line.contains(name)) user_error("[eval] {}: expected \"kind\" and \"file\", got no \"{}\"", place, name);
  TaskSpec spec = make_task_spec(member<std::string>(line, "kind", "", place),
                                 folder / member<std::string>(line, "file", "", place), place);
  spec.name = member(line, "name", spec.name, place);
  spec.shots = member(line, "shots", spec.shots, place);
  spec.delimiter = member(line, "delimiter", spec.delimiter, place);
  spec.chance = member(line, "chance", spec.chance, place);
  if (spec.shots < 0 || spec.shots > kMostShots)
    user_error("[eval] {}: expected 0 to {} in \"shots\", got {}", place, kMostShots, spec.shots);
  if (line.contains("chance") && !(spec.chance >= 0 && spec.chance < 1))
    user_error("[eval] {}: expected a share from 0 to below 1 in \"chance\", got {}", place, spec.chance);
  if (spec.shots > 0 && spec.format->answer == Answer::kText)
    user_error("[eval] {}: expected no shots before texts, got {}", place, spec.shots);
  return spec;
}

}  // namespace

std::vector<TaskSpec> read_task_list(const std::filesystem::path& file) {
  std::vector<TaskSpec> specs;
  std::istringstream lines(read_file(file));
  int64_t number = 0;
  for (std::string text; std::getline(lines, text);) {
    std::string place = fmt::format("{} line {}", file.string(), ++number);
    if (text.find_first_not_of(" \t\r") == text.npos) continue;
    json line = parse_json(text);
    if (!line.is_object()) user_error("[eval] {}: expected a JSON object on each line, got other text", place);
    specs.push_back(spec_of(line, file.parent_path(), place));
  }
  if (specs.empty()) user_error("[eval] {}: expected tasks, got none", file.string());
  return specs;
}

}  // namespace tokamak
