// Keys that not all of the alternatives of a section read, as families of models or optimizers: each lists its own.
// Tests: tests/config/idle_settings_test.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

using OwnOptions = std::span<const std::string_view>;

/// "<section>.<key>" of each key of `all` that is not in `own`, once and in their order.
std::vector<std::string> unread_options(std::string_view section, OwnOptions own, const std::vector<OwnOptions>& all);

}  // namespace tokamak
