// The configuration as JSON text, as checkpoints store it. Tests: tests/config/json_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/assignment.h"

namespace tokamak {

struct RunConfig;

/// Every key with its value: {"model": {"layers": 12, ...}, ..., "threads": 0}.
std::string to_json(const RunConfig& config);

/// The keys and values of such a text. UserError when it is no object or has values of other kinds.
std::vector<Assignment> parse_json(std::string_view text, std::string_view where);

/// Reads what to_json wrote, also in earlier versions (config/former_keys.h); keys that are absent keep their defaults.
/// `where` names the file for messages. Unknown keys, wrong types and values outside their range are UserErrors.
RunConfig run_config_from_json(std::string_view text, std::string_view where);

}  // namespace tokamak
