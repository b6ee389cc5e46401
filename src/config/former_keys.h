// Keys and names of earlier versions, which old checkpoints have. Tests: tests/config/json_test.cpp,
// tests/errors/cli_config_test.cpp.
#pragma once

#include <string_view>

namespace tokamak {

/// The name of the pass that a key switched off and on, as compile.disable_passes does for all passes; empty for every
/// other key.
std::string_view former_pass_switch(std::string_view key);

/// Of a key that is no more: why, and what to do. Empty for every other key. What a checkpoint says of it is left out.
std::string_view why_removed(std::string_view key);

/// What a pass is called now.
std::string_view present_pass(std::string_view name);

}  // namespace tokamak
