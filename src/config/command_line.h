// Arguments of a command: --key=value, --key value, --flag, --no-flag, and arguments without a name.
// Tests: tests/config/command_line_test.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/assignment.h"

namespace tokamak {

/// The arguments as assignments. Options may stand anywhere; "--" ends them; '-' and '_' in keys are the same; lists
/// are separated by commas. Unknown keys, missing values and values of the wrong type are UserErrors. Positional fields
/// are set at once.
std::vector<Assignment> parse_arguments(const std::vector<Field>& fields, std::span<const std::string> arguments);

/// What a user has said, beside the values: a command may choose what was left open.
struct GivenOptions {
  std::vector<std::string> arguments;  // as typed
  std::vector<std::string> keys;       // set by the configuration file or by an option
  std::vector<std::string> chosen;     // of them those that somebody has chosen, as far as that can be told
  std::vector<Assignment> options;     // those among the arguments

  bool has(std::string_view key) const;

  /// Whether it was typed, or written into a run file by hand. Of a file with every key, as --print-config makes them,
  /// that is what differs from the default, and nothing of what a run has written itself.
  bool chose(std::string_view key) const;
};

/// The whole order of precedence: the fields' present values < the configuration file < options.
GivenOptions read_options(const std::vector<Field>& fields, std::span<const std::string> arguments);

}  // namespace tokamak
