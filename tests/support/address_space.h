// A process that gets no memory, for tests of what is said then. Root has no limit of threads, so it is the memory for
// their stacks that can lack.
#pragma once

#include <sys/resource.h>

#include <cstdlib>
#include <fstream>

namespace tokamak::test {

inline rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

/// Sanitizers reserve terabytes, and need more of them at any time: no test is possible.
inline bool has_sanitizer() { return address_space() > rlim_t(1) << 40; }
inline constexpr const char* kSanitized = "no limit of the address space under a sanitizer";

/// For the rest of this process, which is a death test's.
inline void leave_address_space(rlim_t bytes) {
  rlimit limit = {address_space() + bytes, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(9);
}

}  // namespace tokamak::test
