#include "backend/device_trace.h"

#include <algorithm>

namespace tokamak {

std::vector<DeviceActivity> tagged_activities(const std::vector<DeviceRecord>& records,
                                              const std::map<uint32_t, uint64_t>& tags, uint64_t start) {
  auto since_start = [&](uint64_t at) { return 1e-9 * double(int64_t(at - start)); };
  std::vector<DeviceActivity> activities;
  for (const DeviceRecord& record : records)
    if (auto tag = tags.find(record.correlation); tag != tags.end())
      activities.push_back({tag->second, since_start(record.begin), since_start(record.end), record.name});
  std::stable_sort(activities.begin(), activities.end(),
                   [](const DeviceActivity& a, const DeviceActivity& b) { return a.begin < b.begin; });
  return activities;
}

}  // namespace tokamak
