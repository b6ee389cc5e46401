// Which processes take their memory from the same place. Tests: tests/base/memory_sharers_test.cpp.
#pragma once

#include <filesystem>
#include <string>

namespace tokamak {

/// The same text in all processes that share one memory: those of a running system that are in one control group.
/// `root`: where /proc is; another one for tests.
std::string memory_place(const std::filesystem::path& root = "/");

}  // namespace tokamak
