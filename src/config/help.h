// What --help and docs/cli.md say about a list of fields.
#pragma once

#include <string>
#include <vector>

#include "config/field.h"

namespace tokamak {

/// "INPUT... [CONFIG] [--key=value ...]": the arguments in short.
std::string usage(const std::vector<Field>& fields);

/// Arguments and options by section, one or two lines each, with the present values as defaults.
std::string help_text(const std::vector<Field>& fields);

/// The same as Markdown tables, without the fields under config(): many commands take those, and docs/cli.md has them
/// once.
std::string help_markdown(const std::vector<Field>& fields);

}  // namespace tokamak
