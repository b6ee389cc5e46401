#include "data/sources/json_field.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace tokamak {

using nlohmann::json;

namespace {

/// Listens to the parser and keeps the field; no tree of the object is built.
class FieldFinder : public nlohmann::json_sax<json> {
 public:
  explicit FieldFinder(const std::string& field) : field_(field) {}

  bool is_object() const { return is_object_; }
  bool has_text() const { return found_ == Found::kText; }
  bool has_other() const { return found_ == Found::kOther; }
  std::string& text() { return text_; }

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
    if (depth_ == 1) is_wanted_ = name == field_;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

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

  const std::string& field_;
  std::string text_;
  int64_t depth_ = 0;
  bool is_object_ = false;
  bool is_wanted_ = false;  // the value that comes next is the field's
  Found found_ = Found::kNothing;
};

constexpr size_t kShown = 60;  // bytes of what is wrong, in messages

std::string show_field(std::string_view object, const std::string& field) {
  json tree = parse_json(object);
  return tree.is_object() ? format_json(tree.at(field)).substr(0, kShown) : "lists or objects nested too deeply";
}

}  // namespace

std::string json_text_field(std::string_view object, const std::string& field, const std::string& place,
                            std::string_view else_do) {
  FieldFinder finder(field);
  if (!json::sax_parse(object, &finder) || !finder.is_object())
    user_error("[data] {}: expected a JSON object, got {}; repair it, read the file as text, or {}", place,
               object.substr(0, kShown), else_do);
  if (!finder.has_text())
    user_error("[data] {}: expected a text field \"{}\", got {}; name the field with --field, or {}", place, field,
               finder.has_other() ? show_field(object, field) : "none", else_do);
  return std::move(finder.text());
}

}  // namespace tokamak
