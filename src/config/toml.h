// Configuration files: TOML in, TOML out. Tests: tests/config/toml_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/assignment.h"

namespace tokamak {

/// The keys of a TOML text, "section.key" each. `name` is the file's, for messages. Text that is no TOML, and values of
/// a kind that no field has, are UserErrors with the line.
std::vector<Assignment> parse_toml(const std::vector<Field>& fields, std::string_view text, std::string_view name);

/// The configuration fields with their present values and help as comments; parse_toml reads the same values back.
std::string print_toml(const std::vector<Field>& fields);

}  // namespace tokamak
