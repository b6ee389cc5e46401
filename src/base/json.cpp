#include "base/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tokamak {

namespace {

/// Where brackets outside of strings are one too many; npos if they are not. Text that is no JSON may pass: the parser
/// is to find that out.
size_t find_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxJsonDepth) return i;
  }
  return text.npos;
}

/// Listens for the first error.
class ErrorFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  size_t place = 0;
  std::string reason;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    place = at;
    reason = error.what();
    return false;
  }
};

std::string at_place(std::string_view text, size_t at, std::string_view reason) {
  std::string_view before = text.substr(0, at);
  size_t column = at - (before.rfind('\n') + 1);  // npos + 1 is 0
  auto line = std::count(before.begin(), before.end(), '\n');
  bool has_lines = text.find('\n') < text.size() - 1;
  std::string place =
      has_lines ? fmt::format("line {}, column {}", line + 1, column + 1) : fmt::format("column {}", column + 1);
  return fmt::format(" ({}: {})", place, reason);
}

/// What is left of nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while
/// parsing value - invalid literal; last read: 'x'; expected '}'": its place counts differently, and what was read may
/// be long and hold any bytes.
std::string without_quotation(std::string_view reason) {
  if (size_t colon = reason.find(": "); colon != reason.npos) reason.remove_prefix(colon + 2);
  size_t read = reason.find("; last read: '"), end = reason.rfind("'; expected ");
  std::string text(reason.substr(0, read));
  if (read != reason.npos && end != reason.npos && end > read) text += reason.substr(end + 1);
  return text;
}

template <typename Json>
Json parse(std::string_view text) {
  bool is_fit = text.find('\0') == text.npos && find_too_deep(text) == text.npos;
  return is_fit ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
}

template <typename Json>
std::string print(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return parse<nlohmann::json>(text); }
nlohmann::ordered_json parse_ordered_json(std::string_view text) { return parse<nlohmann::ordered_json>(text); }

std::string json_error(std::string_view text) {
  if (size_t at = text.find('\0'); at != text.npos) return at_place(text, at, kZeroByteError);
  if (size_t at = find_too_deep(text); at != text.npos)
    return at_place(text, at, fmt::format("lists and objects nested more than {} levels deep", kMaxJsonDepth));
  ErrorFinder finder;
  nlohmann::json::sax_parse(text, &finder);
  return finder.reason.empty() ? "" : json_error(text, finder.place, finder.reason);
}

std::string json_error(std::string_view text, size_t place, std::string_view reason) {
  return at_place(text, std::min(std::max<size_t>(place, 1) - 1, text.size()), without_quotation(reason));
}

std::string format_json(const nlohmann::json& value, int indent) { return print(value, indent); }
std::string format_json(const nlohmann::ordered_json& value, int indent) { return print(value, indent); }

}  // namespace tokamak
