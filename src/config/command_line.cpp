#include "config/command_line.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/foreign_names.h"
#include "config/number.h"
#include "config/run_file.h"

namespace tokamak {

namespace {

/// Text as a value of the field's type; text that is none stays text, so that set() reports what came.
struct ParseText {
  std::string_view text;

  Value operator()(bool*) const {
    for (std::string_view yes : {"true", "on", "yes", "1"})
      if (text == yes) return true;
    for (std::string_view no : {"false", "off", "no", "0"})
      if (text == no) return false;
    return std::string(text);
  }
  Value operator()(int64_t*) const {
    if (std::optional<int64_t> whole = parse_whole(text)) return *whole;
    std::optional<double> number = parse_real(text);
    // A fraction that a double rounds to a whole number stays text: set() would take it.
    if (number && (*number != std::floor(*number) || std::fabs(*number) >= 0x1p63)) return *number;
    return std::string(text);
  }
  Value operator()(double*) const {
    if (std::optional<double> number = parse_real(text)) return *number;
    return std::string(text);
  }
  Value operator()(std::string*) const { return std::string(text); }
  Value operator()(Precision*) const { return std::string(text); }
  Value operator()(std::vector<std::string>*) const { return split_list(text); }
};

class ArgumentParser {
 public:
  ArgumentParser(const std::vector<Field>& fields, std::span<const std::string> arguments)
      : fields_(fields), arguments_(arguments) {
    std::copy_if(fields.begin(), fields.end(), std::back_inserter(positional_),
                 [](const Field& field) { return field.is_positional(); });
  }

  std::vector<Assignment> parse() {
    bool options_ended = false;
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (!options_ended && argument == "--") {
        options_ended = true;
      } else if (!options_ended && argument.size() > 1 && argument[0] == '-') {
        option(argument);
      } else {
        positional(argument);
      }
    }
    check_required();
    return assignments_;
  }

 private:
  void option(const std::string& argument) {
    if (!argument.starts_with("--")) {
      user_error(
          "[{}] expected an option such as --key=value, got '{}'{}; put arguments that begin with '-' after '--'",
          argument, argument, foreign_hint(argument.substr(0, argument.find('=')), option_names(fields_)));
    }
    size_t equals = std::min(argument.find('='), argument.size());
    std::string where = argument.substr(0, equals);
    std::string key = where.substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    if (equals == argument.size() && key.starts_with("no_") && is_flag(key.substr(3))) {
      assignments_.push_back({key.substr(3), false, where, "false"});
      return;
    }
    const Field& field = require_field(fields_, key, where);
    std::string text;
    if (equals < argument.size()) {
      text = argument.substr(equals + 1);
    } else if (std::holds_alternative<bool*>(field.target)) {
      text = "true";
    } else if (next_ < arguments_.size() && !arguments_[next_].starts_with("--")) {
      text = arguments_[next_++];
    } else {
      user_error("[{}] expected {}, got nothing; write {}=VALUE", where, expectation(field), where);
    }
    assignments_.push_back({key, std::visit(ParseText{text}, field.target), where, text});
  }

  bool is_flag(const std::string& key) const {
    const Field* field = find_field(fields_, key);
    return field && std::holds_alternative<bool*>(field->target);
  }

  void positional(const std::string& argument) {
    if (used_ == positional_.size()) {
      std::string_view meant = find_field(fields_, "prompt")      ? ", a text to continue --prompt=TEXT"
                               : find_field(fields_, "data.path") ? ", data --data.path=PATH"
                                                                  : "";
      user_error("[{}] expected {} argument{} without a name, got one more; options are written --key=value{}",
                 argument, positional_.size(), positional_.size() == 1 ? "" : "s", meant);
    }
    const Field& field = positional_[used_];
    if (auto* list = std::get_if<std::vector<std::string>*>(&field.target)) {
      if (!list_begun_) (*list)->clear();
      list_begun_ = true;
      (*list)->push_back(argument);
      return;
    }
    set(field, std::visit(ParseText{argument}, field.target), field.key);
    ++used_;
  }

  void check_required() const {
    for (size_t i = used_; i < positional_.size(); ++i) {
      if (!positional_[i].required || (i == used_ && list_begun_)) continue;
      user_error("[{}] expected {}, got nothing", positional_[i].key, positional_[i].help);
    }
  }

  const std::vector<Field>& fields_;
  std::span<const std::string> arguments_;
  std::vector<Field> positional_;
  std::vector<Assignment> assignments_;
  size_t next_ = 0;  // the argument that is read next
  size_t used_ = 0;  // positional fields that have their value
  bool list_begun_ = false;
};

// Of the keys of a TOML file, read while the fields have their defaults.
std::vector<std::string> chosen_in_file(const std::vector<Field>& fields, const std::vector<Assignment>& assignments) {
  bool has_all = std::ranges::all_of(config_fields(fields), [&](const Field& field) {
    return std::ranges::find(assignments, field.key, &Assignment::key) != assignments.end();
  });
  std::vector<std::string> keys;
  for (const Assignment& assignment : assignments)
    if (!has_all || assignment.value != get(require_field(fields, assignment.key, assignment.where)))
      keys.push_back(assignment.key);
  return keys;
}

}  // namespace

std::vector<Assignment> parse_arguments(const std::vector<Field>& fields, std::span<const std::string> arguments) {
  return ArgumentParser(fields, arguments).parse();
}

bool GivenOptions::has(std::string_view key) const { return std::find(keys.begin(), keys.end(), key) != keys.end(); }

bool GivenOptions::chose(std::string_view key) const {
  return std::find(chosen.begin(), chosen.end(), key) != chosen.end();
}

GivenOptions read_options(const std::vector<Field>& fields, std::span<const std::string> arguments) {
  GivenOptions given{{arguments.begin(), arguments.end()}, {}, {}, parse_arguments(fields, arguments)};
  for (const Field& field : fields) {
    if (field.kind != FieldKind::kConfigFile) continue;
    const std::string& path = *std::get<std::string*>(field.target);
    if (path.empty()) continue;
    RunFileContent file = read_run_file(fields, path);
    if (!file.is_json) given.chosen = chosen_in_file(fields, file.assignments);
    assign(fields, file.assignments);
    for (const Assignment& assignment : file.assignments) given.keys.push_back(assignment.key);
  }
  assign(fields, given.options);
  for (const Assignment& option : given.options)
    for (auto* list : {&given.keys, &given.chosen}) list->push_back(option.key);
  return given;
}

}  // namespace tokamak
