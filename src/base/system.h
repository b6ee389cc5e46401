// Facts about the machine that the process runs on, and what the process may use of it.
#pragma once

#include <cstdint>
#include <string>

#include "base/control_group.h"

namespace tokamak {

/// Bytes that can be allocated without swapping (MemAvailable of /proc/meminfo) and within the limits of the process's
/// control groups; 0 where that is unknown.
int64_t available_memory(const GroupLimits& limits = read_group_limits());

/// How many of so many processors the quotas of the process's control groups amount to, rounded up.
int usable_cpus(int cpus, const GroupLimits& limits = read_group_limits());

/// Bytes of the process that are in memory now; 0 where that is unknown.
int64_t resident_bytes();

/// Seconds since the process began, to a hundredth; 0 where that is unknown.
double process_seconds();

/// What the machine calls itself, for messages.
std::string host_name();

/// Lets the process open as many files as its hard limit allows: the usual soft limit of 1024 is less than large data
/// has shards. Changes nothing where the system refuses.
void raise_open_file_limit();

}  // namespace tokamak
