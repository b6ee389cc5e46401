#include "backend/device_trace.h"

#include <algorithm>

namespace tokamak {
namespace {

// 0: none.
uint64_t tag_of(uint32_t call, const DeviceReport& report) {
  if (auto tag = report.tags.find(call); tag != report.tags.end()) return tag->second;
  auto asked = report.asked.find(call);
  if (asked == report.asked.end()) return 0;
  uint64_t at = asked->second;
  auto later = [](uint64_t time, const DeviceReport::Span& span) { return time < span.begin; };
  auto span = std::upper_bound(report.spans.begin(), report.spans.end(), at, later);
  while (span != report.spans.begin())
    if ((--span)->end >= at) return span->tag;
  return 0;
}

}  // namespace

std::vector<DeviceActivity> tagged_activities(const DeviceReport& report, uint64_t start) {
  auto since_start = [&](uint64_t at) { return 1e-9 * double(int64_t(at - start)); };
  std::vector<DeviceActivity> activities;
  for (const DeviceReport::Record& record : report.records)
    if (uint64_t tag = tag_of(record.call, report))
      activities.push_back({tag, since_start(record.begin), since_start(record.end), record.name});
  std::stable_sort(activities.begin(), activities.end(),
                   [](const DeviceActivity& a, const DeviceActivity& b) { return a.begin < b.begin; });
  return activities;
}

}  // namespace tokamak
