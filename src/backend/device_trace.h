// What a device did, as the tools of its maker saw it. Tests: tests/profile/device_trace_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

/// A kernel or copy, in seconds from the trace's start.
struct DeviceActivity {
  uint64_t tag = 0;  // under which it was asked for
  double begin = 0, end = 0;
  std::string name;
};

/// Watches the device from when it is made until it ends. One at a time in a process.
class DeviceTrace {
 public:
  virtual ~DeviceTrace() = default;
  /// What this thread asks for until pop() is the tag's, which is not 0.
  virtual void push(uint64_t tag) = 0;
  virtual void pop() = 0;
  /// All that was asked for under a tag and has ended, in order of time; to be called when the device has nothing to
  /// do.
  virtual std::vector<DeviceActivity> take() = 0;
};

/// A kernel or copy as it was reported, by the nanoseconds of the tool's clock.
struct DeviceRecord {
  uint32_t correlation = 0;  // of the call that asked for it
  uint64_t begin = 0, end = 0;
  std::string name;
};

/// Those whose call has a tag, in order of time.
std::vector<DeviceActivity> tagged_activities(const std::vector<DeviceRecord>& records,
                                              const std::map<uint32_t, uint64_t>& tags, uint64_t start);

}  // namespace tokamak
