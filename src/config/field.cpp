#include "config/field.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "config/foreign_values.h"

namespace tokamak {

namespace {

std::string join_choices(const std::vector<std::string>& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i].empty() ? "\"\"" : choices[i];
  }
  return text;
}

std::string format_bound(double bound) {
  return std::abs(bound) < 1e15 && bound == std::floor(bound) ? fmt::format("{}", int64_t(bound))
                                                              : fmt::format("{}", bound);
}

std::string range_in_words(const Rule& rule) {
  bool low = std::isfinite(rule.least), high = std::isfinite(rule.most);
  if (low && high && rule.most_excluded) {
    return fmt::format(" from {} up to but not including {}", format_bound(rule.least), format_bound(rule.most));
  }
  if (low && high) return fmt::format(" from {} to {}", format_bound(rule.least), format_bound(rule.most));
  if (low) return fmt::format(" of at least {}", format_bound(rule.least));
  return "";
}

struct TypeInWords {
  std::string operator()(bool*) const { return "true or false"; }
  std::string operator()(int64_t*) const { return "a whole number"; }
  std::string operator()(double*) const { return "a number"; }
  std::string operator()(std::string*) const { return "text"; }
  std::string operator()(std::vector<std::string>*) const { return "a list of texts"; }
  std::string operator()(Precision*) const { return "a precision"; }
};

/// How a value that came is named in messages.
std::string describe(const Value& value) {
  if (std::holds_alternative<std::string>(value)) return "the text " + format_value(value);
  if (std::holds_alternative<std::vector<std::string>>(value)) return "the list " + format_value(value);
  return format_value(value);
}

bool in_range(const Rule& rule, double x) {
  if (!std::isfinite(x)) return false;
  if (x < rule.least) return false;
  return rule.most_excluded ? x < rule.most : x <= rule.most;
}

bool obeys(const Rule& rule, const Value& value) {
  if (auto* number = std::get_if<int64_t>(&value)) return in_range(rule, double(*number));
  if (auto* number = std::get_if<double>(&value)) return in_range(rule, *number);
  auto known = [&rule](const std::string& text) {
    return rule.choices.empty() || std::find(rule.choices.begin(), rule.choices.end(), text) != rule.choices.end();
  };
  if (auto* text = std::get_if<std::string>(&value)) return known(*text);
  if (auto* list = std::get_if<std::vector<std::string>>(&value)) return std::all_of(list->begin(), list->end(), known);
  return true;
}

constexpr double kExact = 0x1p53;  // up to here a double is the number that was written

/// 1e4 and 10000.0 are whole numbers. Files give them as doubles.
std::optional<int64_t> as_whole(double number) {
  if (std::fabs(number) >= kExact || number != std::floor(number)) return std::nullopt;
  return int64_t(number);
}

/// What is said of numbers that are whole, but too large to be sure of or for the type.
std::string largest_whole(const Field& field, const Value& value) {
  auto* number = std::get_if<double>(&value);
  if (!number || !std::holds_alternative<int64_t*>(field.target)) return "";
  bool is_beyond = std::fabs(*number) >= 0x1p63;
  if (is_beyond) return fmt::format(", at most {}", std::numeric_limits<int64_t>::max());
  return std::fabs(*number) >= kExact ? ", with all its digits" : "";
}

/// What was meant where a text is none of the choices.
std::string choice_hint(const Field& field, const Value& value) {
  auto* text = std::get_if<std::string>(&value);
  return text && !field.rule.choices.empty() ? value_hint(field.key, *text, field.rule.choices) : "";
}

[[noreturn]] void unexpected(const Field& field, const Value& value, std::string_view where) {
  user_error("[{}] expected {}{}, got {}{}", where, expectation(field), largest_whole(field, value), describe(value),
             choice_hint(field, value));
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      default:
        if (uint8_t(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\u{:04x}", int(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

struct FormatValue {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const {
    std::string text = fmt::format("{}", value);
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
  }
  std::string operator()(const std::string& value) const { return quote(value); }
  std::string operator()(const std::vector<std::string>& list) const {
    std::string text = "[";
    for (const std::string& item : list) text += (text.size() > 1 ? ", " : "") + quote(item);
    return text + "]";
  }
};

}  // namespace

Rule at_least(double least) { return {.least = least}; }
Rule between(double least, double most) { return {.least = least, .most = most}; }
Rule from_up_to(double least, double most) { return {.least = least, .most = most, .most_excluded = true}; }
Rule one_of(std::vector<std::string> choices) { return {.choices = std::move(choices)}; }

Field& FieldList::add(std::string_view name, ValuePointer target, std::string_view help, Rule rule, FieldKind kind) {
  std::string key = prefix_ + std::string(name);
  TOKAMAK_CHECK(find_field(fields_, key) == nullptr, "the field {} is visited twice", key);
  fields_.push_back({.key = std::move(key),
                     .help = std::string(help),
                     .section_help = section_help_,
                     .target = target,
                     .rule = std::move(rule),
                     .kind = kind,
                     .alternatives = alternatives_});
  return fields_.back();
}

void FieldList::preset(std::string_view name, std::string& target, std::string_view help,
                       std::vector<std::string> choices, std::function<void()> expand) {
  add(name, &target, help, one_of(std::move(choices)), kind_).expand = std::move(expand);
}

const Field* find_field(const std::vector<Field>& fields, std::string_view key) {
  auto found = std::find_if(fields.begin(), fields.end(), [key](const Field& field) { return field.key == key; });
  return found == fields.end() ? nullptr : &*found;
}

Value get(const Field& field) {
  auto read = []<class T>(T* target) -> Value {
    if constexpr (std::is_same_v<T, Precision>)
      return std::string(precision_name(*target));
    else
      return *target;
  };
  return std::visit(read, field.target);
}

std::string expectation(const Field& field) {
  if (!field.rule.choices.empty()) return join_choices(field.rule.choices);
  return std::visit(TypeInWords(), field.target) + range_in_words(field.rule);
}

/// Items stand between commas; "\\," is a comma in an item.
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  bool in_item = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!std::exchange(in_item, text[i] != ',')) items.emplace_back();
    if (text[i] == ',') continue;
    if (text.substr(i, 2) == "\\,") ++i;
    items.back() += text[i];
  }
  return items;
}

void set(const Field& field, const Value& value, std::string_view where) {
  Value wanted = value;
  auto* whole = std::get_if<int64_t>(&value);
  if (whole && std::holds_alternative<double*>(field.target)) wanted = double(*whole);
  auto* number = std::get_if<double>(&value);
  if (number && std::holds_alternative<int64_t*>(field.target))
    if (std::optional<int64_t> exact = as_whole(*number)) wanted = *exact;
  auto* text = std::get_if<std::string>(&value);
  if (text && std::holds_alternative<std::vector<std::string>*>(field.target)) wanted = split_list(*text);
  auto store = [&]<class T>(T* target) {
    constexpr bool kIsPrecision = std::is_same_v<T, Precision>;
    const auto* typed = std::get_if<std::conditional_t<kIsPrecision, std::string, T>>(&wanted);
    if (!typed || !obeys(field.rule, wanted)) unexpected(field, value, where);
    if constexpr (kIsPrecision)
      *target = parse_precision(*typed);
    else
      *target = *typed;
  };
  std::visit(store, field.target);
}

void check_rule(const Field& field, std::string_view where) {
  Value value = get(field);
  if (!obeys(field.rule, value)) unexpected(field, value, where);
}

std::string format_value(const Value& value) { return std::visit(FormatValue(), value); }

}  // namespace tokamak
