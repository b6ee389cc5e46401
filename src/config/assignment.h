// Keys and values as they came from one source (a TOML file, JSON, the command line), before they reach the struct.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"

namespace tokamak {

struct Assignment {
  std::string key;
  Value value;
  std::string where;       // for messages: "run.toml:7: model.layers", "--model.layers"
  std::string typed = {};  // the value as it stood on the command line
};

/// Sets the fields of one source: presets first, then the other keys in order. An unknown key is a UserError that
/// suggests the nearest known one; so are two alternatives (Field::alternatives) that both say something.
void assign(const std::vector<Field>& fields, const std::vector<Assignment>& assignments);

/// The field that `key` names; an unknown key is a UserError with the nearest known one.
const Field& require_field(const std::vector<Field>& fields, std::string_view key, std::string_view where);

/// The fields that are options, spelled as behind "--".
std::vector<std::string> option_names(const std::vector<Field>& fields);

/// Those that files may set.
std::vector<Field> config_fields(const std::vector<Field>& fields);

}  // namespace tokamak
