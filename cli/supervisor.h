// A training run that starts again by itself. Tests: tests/e2e/supervisor_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tokamak {

/// Runs this program, with its arguments, as another process, and again when that dies: when a signal that nobody asked
/// for or an error of ours ends it, or it loses a rank. At most `restarts` times an hour, and not when it dies twice
/// within the same step; then it throws a UserError that says so. Ends as the process does in all other cases, and
/// passes a request to stop on. All processes of one start are gone before the next. `run`: its folder; `variables`: of
/// that process's environment, each "NAME=value".
int supervise(const std::filesystem::path& run, int64_t restarts, const std::vector<std::string>& variables = {});

/// What tells a process that this one supervises it: a variable of its environment, "NAME=value".
std::string supervisor_variable();

/// Whether this process is one that supervise() or an agent has started.
bool is_supervised();

/// In such a process: it is told to stop, as by SIGTERM, when the one that supervises is gone. Elsewhere nothing.
void stop_with_supervisor();

/// The exit status of a run that has lost ranks: one that says so to the supervisor, where there is one; else 1.
int lost_ranks_status();

}  // namespace tokamak
