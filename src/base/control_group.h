// What the control groups of a process (containers, systemd, Slurm) leave it: versions 1 and 2.
// Tests: tests/base/control_group_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tokamak {

struct GroupLimits {
  std::optional<int64_t> memory_left;  // bytes below the tightest limit, where there is one; cached files count as free
  std::optional<double> cpus;          // that the tightest quota amounts to
};

/// Of this process, all groups around its own included. `root`: where /proc and /sys are; another one for tests.
GroupLimits read_group_limits(const std::filesystem::path& root = "/");

}  // namespace tokamak
