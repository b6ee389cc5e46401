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

/// What a tool reported, all times in nanoseconds of its clock.
struct DeviceReport {
  /// A kernel or copy.
  struct Record {
    uint32_t call = 0;  // that asked for it
    uint64_t begin = 0, end = 0;
    std::string name;
  };
  /// When a tag was pushed and when popped; spans lie within each other or apart.
  struct Span {
    uint64_t tag = 0, begin = 0, end = 0;
  };
  std::vector<Record> records;
  std::map<uint32_t, uint64_t> tags;   // of calls by threads that had one
  std::map<uint32_t, uint64_t> asked;  // when calls were made
  std::vector<Span> spans;             // in the order of their beginnings
};

/// Those whose call has a tag, in order of time, by seconds since `start`. The call of a thread without one was made
/// for whoever was in the innermost span then: a library may launch from a thread of its own, while it is waited for.
std::vector<DeviceActivity> tagged_activities(const DeviceReport& report, uint64_t start);

}  // namespace tokamak
