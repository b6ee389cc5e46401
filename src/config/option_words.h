// Fields as words of a command line, for completions in shells and for manual pages.
// Tests: tests/config/option_words_test.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"

namespace tokamak {

/// One field as it is typed and told; see field.h for what the parts mean.
struct OptionWords {
  std::string name;         // "--train.batch"; of an argument without a name "CONFIG" or "INPUT..."
  std::string placeholder;  // "=N"; empty for switches and for arguments without a name
  std::string help;
  std::string section;  // "train", or empty
  std::string section_help;
  std::vector<std::string> choices;  // without the empty one
  std::string present;               // the value that it has now
  FieldKind kind = FieldKind::kOption;
  bool is_switch = false;
  bool is_list = false;  // values with commas between them

  bool is_positional() const { return kind == FieldKind::kPositional || kind == FieldKind::kConfigFile; }
};

std::vector<OptionWords> option_words(const std::vector<Field>& fields);

/// A word that could stand where one is typed, and a line on it.
struct Candidate {
  std::string word;
  std::string help;
  bool operator==(const Candidate&) const = default;
};

/// The options, or an option's values, that `word`, which begins with "-", could become; '-' and '_' in it are the
/// same. Options that take a value end with "=".
std::vector<Candidate> complete_option(std::span<const OptionWords> options, std::string_view word);

/// The values that `value` could become where the word before is the option `name`.
std::vector<Candidate> complete_value(std::span<const OptionWords> options, std::string_view name,
                                      std::string_view value);

}  // namespace tokamak
