// Profiled steps as a trace that Perfetto (ui.perfetto.dev) opens, in Chrome's JSON format: a process for each rank, a
// thread for each stream and for what the host does, counters for memory and sensors.
// Tests: tests/profile/trace_test.cpp.
#pragma once

#include "exec/mesh_ranks.h"
#include "profile/profiler.h"

#include <filesystem>
#include <string>
#include <vector>

namespace tokamak {

struct TraceLimits {
  int64_t steps = 5;         // the first of those that were profiled
  int64_t events = 100'000;  // of a rank, the earliest
};

/// A rank's events, each a line of JSON, with its number as pid, and `offset` seconds added to all times.
std::vector<std::string> trace_events(const StepProfile& profile, int64_t rank, double offset,
                                      const TraceLimits& limits = {});

/// The events of all ranks, in their order, on every rank; those of one machine by one clock, which begins
/// with the first of them.
std::vector<std::string> gather_trace(const StepProfile& profile, const MeshRanks* ranks,
                                      const TraceLimits& limits = {});

/// The text of a trace.
std::string format_trace(const std::vector<std::string>& events, const std::string& command);

/// UserError unless a trace can be written there: a name that ends in .json, or with zlib in .json.gz.
void check_trace_file(const std::filesystem::path& file);

/// Compressed where the name ends in .gz.
void write_trace(const std::filesystem::path& file, const std::string& text);

}  // namespace tokamak
