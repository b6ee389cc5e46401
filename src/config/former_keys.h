// Keys of earlier versions that each switched one pass off and on, as compile.disable_passes does for all passes.
// Old checkpoints have them. Tests: tests/config/json_test.cpp, tests/errors/cli_config_test.cpp.
#pragma once

#include <string_view>

namespace tokamak {

/// The name of the pass that such a key switched; empty for every other key.
std::string_view former_pass_switch(std::string_view key);

}  // namespace tokamak
