#include "data/sources/json_field.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace tokamak {

using nlohmann::json;

namespace {

/// Listens to the parser and keeps the field; no tree of the object is built.
class FieldFinder : public nlohmann::json_sax<json> {
 public:
  explicit FieldFinder(const std::string& field) : field_(&field) {}

  const std::string& field() const { return *field_; }

  bool is_object() const { return is_object_; }
  bool has_text() const { return found_ == Found::kText; }
  bool has_other() const { return found_ == Found::kOther; }
  std::string& text() { return text_; }
  size_t error_place() const { return error_place_; }
  const std::string& error() const { return error_; }  // empty: none

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool string(string_t& text) override {
    if (depth_ == 1 && is_wanted_) {
      found_ = Found::kText;
      text_ = std::move(text);
      return true;
    }
    return value();
  }
  bool start_object(size_t) override {
    if (depth_ == 0) is_object_ = true;
    return open();
  }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (depth_ == 1) is_wanted_ = name == *field_;
    return true;
  }
  bool parse_error(size_t place, const std::string&, const nlohmann::detail::exception& error) override {
    return fail(place, error.what());
  }
  bool fail(size_t place, std::string_view error) {
    error_place_ = place;
    error_ = error;
    return false;
  }

 private:
  enum class Found { kNothing, kText, kOther };

  /// Of a field that is there twice the last counts.
  bool value() {
    if (depth_ == 1 && is_wanted_) found_ = Found::kOther;
    return depth_ > 0;
  }
  bool open() {
    if (depth_ == 1 && is_wanted_) found_ = Found::kOther;
    ++depth_;
    return is_object_;
  }
  bool close() {
    --depth_;
    return true;
  }

  const std::string* field_;
  std::string text_;
  int64_t depth_ = 0;
  bool is_object_ = false;
  bool is_wanted_ = false;  // the value that comes next is the field's
  Found found_ = Found::kNothing;
  size_t error_place_ = 0;
  std::string error_;
};

/// Numbers that Python's json writes and JSON does not know.
constexpr std::string_view kConstants[] = {"NaN", "Infinity", "-Infinity"};

/// Bytes of the constant that the text begins with, 0 if it begins with none.
size_t constant_length(std::string_view text) {
  for (std::string_view constant : kConstants)
    if (text.starts_with(constant)) return constant.size();
  return 0;
}

/// The same for a number as JSON writes it.
size_t number_length(std::string_view text) {
  auto after_digits = [&](size_t from) { return std::min(text.find_first_not_of("0123456789", from), text.size()); };
  size_t begin = text.starts_with('-');
  size_t end = text.substr(begin).starts_with('0') ? begin + 1 : after_digits(begin);
  if (end == begin) return 0;
  if (text.substr(end).starts_with('.')) {
    size_t after = after_digits(end + 1);
    if (after > end + 1) end = after;
  }
  if (text.substr(end).starts_with('e') || text.substr(end).starts_with('E')) {
    size_t digits = end + 1 + (text.substr(end + 1).starts_with('+') || text.substr(end + 1).starts_with('-'));
    size_t after = after_digits(digits);
    if (after > digits) end = after;
  }
  return end;
}

/// Beyond a double, for which nlohmann's parser has an error.
bool is_too_large(std::string_view number) {
  return !number.empty() && std::isinf(std::strtod(std::string(number).c_str(), nullptr));
}

/// The text with a zero in the place of each number that the parser stops at, and blanks around it, so that all other
/// places stay as they are and no two values become one.
std::string blank_odd_numbers(std::string_view text) {
  std::string out(text);
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (in_string && text[at] == '\\') {
      ++at;
      continue;
    }
    if (text[at] == '"') in_string = !in_string;
    if (in_string) continue;
    std::string_view rest = text.substr(at);
    size_t constant = constant_length(rest), number = number_length(rest);
    if (constant > 0 || is_too_large(rest.substr(0, number))) {
      out.replace(at, constant + number, constant + number, ' ');
      out[at + 1] = '0';
    }
    if (constant + number > 0) at += constant + number - 1;
  }
  return out;
}

constexpr size_t kShown = 60;  // bytes of what is wrong, in messages

std::string show_field(std::string_view object, const std::string& field) {
  json tree = parse_json(object);
  return tree.is_object() ? format_json(tree.at(field)).substr(0, kShown) : "lists or objects nested too deeply";
}

/// Goes through the object; `as_read` is the text without odd numbers, if there are any.
bool parse(std::string_view object, FieldFinder& finder, std::string& as_read) {
  if (size_t zero = object.find('\0'); zero != object.npos) return finder.fail(zero + 1, kZeroByteError);
  if (json::sax_parse(object, &finder)) return true;
  if (finder.error().empty()) return false;
  as_read = blank_odd_numbers(object);
  if (as_read == object) return false;
  finder = FieldFinder(finder.field());
  return json::sax_parse(as_read, &finder);
}

}  // namespace

std::string json_text_field(std::string_view object, const std::string& field, const std::string& place,
                            std::string_view else_do) {
  FieldFinder finder(field);
  std::string as_read;
  if (!parse(object, finder, as_read) || !finder.is_object())
    user_error("[data] {}: expected a JSON object, got {}{}; repair it, read the file as text, or {}", place,
               object.substr(0, std::min(kShown, object.find('\0'))),  // at which a message would end
               finder.error().empty() ? "" : json_error(object, finder.error_place(), finder.error()), else_do);
  if (!finder.has_text())
    user_error("[data] {}: expected a text field \"{}\", got {}; name the field with --field, or {}", place, field,
               !finder.has_other() ? "none"
               : as_read.empty()   ? show_field(object, field)
                                   : "no string",
               else_do);
  return std::move(finder.text());
}

}  // namespace tokamak
