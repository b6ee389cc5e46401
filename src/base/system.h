// Facts about the machine that the process runs on.
#pragma once

#include <cstdint>

namespace tokamak {

/// Bytes that can be allocated without swapping (MemAvailable of /proc/meminfo); 0 where that is unknown.
int64_t available_memory();

/// Bytes of the process that are in memory now, and the most there ever were; 0 where unknown.
int64_t resident_bytes();
int64_t peak_resident_bytes();

/// Seconds since the process began, to a hundredth; 0 where that is unknown.
double process_seconds();

}  // namespace tokamak
