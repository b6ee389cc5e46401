// A configuration struct seen as a list of fields. Each struct has one visit(FieldList&, T&) that names every field
// once with its help; parsing, printing, --help, the documentation and the checks all work on this list. Tests:
// tests/config/field_test.cpp.
#pragma once

#include "config/precision.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tokamak {

/// A Precision is text, as in files.
using Value = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;
using ValuePointer = std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*, Precision*>;

/// What a field accepts beyond its type: a range for numbers, or a list of choices for text.
struct Rule {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool most_excluded = false;
  std::vector<std::string> choices;
};

Rule at_least(double least);
Rule between(double least, double most);              // both ends included
Rule from_up_to(double least, double most_excluded);  // [least, most)
Rule one_of(std::vector<std::string> choices);

enum class FieldKind {
  kOption,      // --key=value on the command line only
  kConfig,      // the same, and a key of configuration files; --print-config prints it
  kPositional,  // an argument without a name; a list takes all that are left
  kConfigFile,  // the argument that names a configuration file
};

struct Field {
  std::string key;           // "model.layers"
  std::string help;          // one line
  std::string section_help;  // one line on the section that the field lies in
  ValuePointer target;
  Rule rule;
  FieldKind kind = FieldKind::kOption;
  bool required = false;         // positional arguments only
  std::string alternatives;      // the name of a set of numbers of which one is not 0; empty: of none
  std::function<void()> expand;  // a preset: sets other fields, which explicit keys of the same source override

  bool is_positional() const { return kind == FieldKind::kPositional || kind == FieldKind::kConfigFile; }
};

/// What visit() functions fill; the fields point into the visited struct, which must outlive the list.
class FieldList {
 public:
  /// An ordinary field.
  template <class T>
  void operator()(std::string_view name, T& target, std::string_view help, Rule rule = {}) {
    add(name, &target, help, std::move(rule), kind_);
  }

  /// A field whose value stands for a set of other values; `expand` writes them.
  void preset(std::string_view name, std::string& target, std::string_view help, std::vector<std::string> choices,
              std::function<void()> expand);

  /// The fields of `inner` are numbers that say one thing in several ways, so that one of them is not 0: the one that a
  /// source of values sets takes the place of what an earlier source has set.
  void alternatives(std::string_view name, const std::function<void()>& inner) {
    alternatives_ = name;
    inner();
    alternatives_.clear();
  }

  /// Arguments without a name, in the order of these calls.
  template <class T>
  void positional(std::string_view name, T& target, std::string_view help, bool required = true) {
    add(name, &target, help, {}, FieldKind::kPositional).required = required;
  }

  /// The optional argument that names a TOML file with the fields under config().
  void config_file(std::string_view name, std::string& target, std::string_view help) {
    add(name, &target, help, {}, FieldKind::kConfigFile);
  }

  /// A struct inside: its keys get the prefix "name.".
  template <class S>
  void section(std::string_view name, S& inner, std::string_view help) {
    std::string prefix = prefix_, section_help = section_help_;
    prefix_ += std::string(name) + ".";
    section_help_ = help;
    visit(*this, inner);
    prefix_ = prefix;
    section_help_ = section_help;
  }

  /// A struct whose fields are also keys of configuration files (RunConfig), without a prefix.
  template <class S>
  void config(S& inner) {
    FieldKind kind = kind_;
    kind_ = FieldKind::kConfig;
    visit(*this, inner);
    kind_ = kind;
  }

  std::vector<Field> take() && { return std::move(fields_); }

 private:
  Field& add(std::string_view name, ValuePointer target, std::string_view help, Rule rule, FieldKind kind);

  std::vector<Field> fields_;
  std::string prefix_;
  std::string section_help_;
  std::string alternatives_;
  FieldKind kind_ = FieldKind::kOption;
};

/// The fields of a struct that has a visit() function.
template <class T>
std::vector<Field> fields_of(T& options) {
  FieldList list;
  visit(list, options);
  return std::move(list).take();
}

/// The field of that key, or null.
const Field* find_field(const std::vector<Field>& fields, std::string_view key);

/// The field's present value.
Value get(const Field& field);

/// What the field accepts, in words: "a whole number of at least 1", "fp32, bf16 or auto".
std::string expectation(const Field& field);

/// The items of a list that is written as one text, with commas between them.
std::vector<std::string> split_list(std::string_view text);

/// Sets the field. A value of the wrong type or outside the rule is a UserError "[where] expected ..., got ...". Taken
/// are whole numbers as numbers, numbers without a fraction below 2^53 as whole ones, text as a list (see split_list).
void set(const Field& field, const Value& value, std::string_view where);

/// Throws the UserError of set() when the field's present value breaks its rule.
void check_rule(const Field& field, std::string_view where);

/// The value as TOML writes it; it reads back to the same bits.
std::string format_value(const Value& value);

}  // namespace tokamak
