#include "config/json.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "config/assignment.h"
#include "config/config.h"
#include "config/former_keys.h"
#include "config/visit.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDisablePasses = "compile.disable_passes";

Value to_value(const Json& json, const std::string& where) {
  if (json.is_boolean()) return json.get<bool>();
  bool is_beyond_int64 = json.is_number_unsigned() && json.get<uint64_t>() > uint64_t(INT64_MAX);
  if (json.is_number_integer() && !is_beyond_int64) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array()) user_error("[{}] expected a value, got {}", where, json.type_name());
  std::vector<std::string> list;
  for (const Json& item : json) {
    if (!item.is_string()) user_error("[{}] expected a list of texts, got a list with {}", where, item.type_name());
    list.push_back(item.get<std::string>());
  }
  return list;
}

void read_object(const Json& object, const std::string& prefix, std::string_view where,
                 std::vector<Assignment>& assignments) {
  for (const auto& [name, value] : object.items()) {
    std::string key = prefix + name;
    std::string place = fmt::format("{}: {}", where, key);
    if (value.is_object()) {
      read_object(value, key + ".", where, assignments);
    } else {
      assignments.push_back({key, to_value(value, place), place});
    }
  }
}

// What earlier versions wrote of single passes becomes part of compile.disable_passes.
void replace_former_switches(std::vector<Assignment>& assignments) {
  std::vector<std::string> off;
  std::erase_if(assignments, [&](const Assignment& assignment) {
    std::string_view pass = former_pass_switch(assignment.key);
    if (!pass.empty() && assignment.value == Value(false)) off.emplace_back(pass);
    return !pass.empty();
  });
  if (off.empty()) return;
  for (const Assignment& assignment : assignments)
    if (auto* names = std::get_if<std::vector<std::string>>(&assignment.value);
        names && assignment.key == kDisablePasses)
      off.insert(off.begin(), names->begin(), names->end());
  assignments.push_back({kDisablePasses, off, kDisablePasses});
}

}  // namespace

std::string to_json(const RunConfig& config) {
  RunConfig copy = config;
  Json root = Json::object();
  for (const Field& field : fields_of(copy)) {
    std::string pointer = "/" + field.key;
    for (char& c : pointer) c = c == '.' ? '/' : c;
    std::visit([&](const auto& value) { root[Json::json_pointer(pointer)] = value; }, get(field));
  }
  return format_json(root, 2);
}

std::vector<Assignment> parse_json(std::string_view text, std::string_view where) {
  Json root = parse_ordered_json(text);
  if (!root.is_object())
    user_error("[{}] expected a JSON object with the run's configuration, got other text{}", where, json_error(text));
  std::vector<Assignment> assignments;
  read_object(root, "", where, assignments);
  replace_former_switches(assignments);
  std::erase_if(assignments, [](const Assignment& assignment) { return !why_removed(assignment.key).empty(); });
  return assignments;
}

RunConfig run_config_from_json(std::string_view text, std::string_view where) {
  RunConfig config;
  assign(fields_of(config), parse_json(text, where));
  return config;
}

}  // namespace tokamak
