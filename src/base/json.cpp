#include "base/json.h"

#include <nlohmann/json.hpp>

namespace tokamak {

namespace {

/// Counts brackets outside of strings. Text that is no JSON may pass: the parser is to find that out.
bool is_shallow(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxJsonDepth) return false;
  }
  return true;
}

template <typename Json>
Json parse(std::string_view text) {
  return is_shallow(text) ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
}

template <typename Json>
std::string print(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return parse<nlohmann::json>(text); }
nlohmann::ordered_json parse_ordered_json(std::string_view text) { return parse<nlohmann::ordered_json>(text); }

std::string format_json(const nlohmann::json& value, int indent) { return print(value, indent); }
std::string format_json(const nlohmann::ordered_json& value, int indent) { return print(value, indent); }

}  // namespace tokamak
