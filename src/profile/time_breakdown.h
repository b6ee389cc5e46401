// Where the wall time of steps went: every moment is given to one kind of work, or to what kept the device from
// working, so that the parts add up to the whole. A pure function of what ran when. Tests:
// tests/profile/time_breakdown_test.cpp.
#pragma once

#include "ops/work_class.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tokamak {

/// What took a time. Work goes before reasons for having none: the first of this list that an instant has counts.
enum class Activity : uint8_t { kCompute, kCommunication, kCopy, kRun, kDataWait };

/// One of them, in seconds from the beginning of what is accounted for.
struct ActivitySpan {
  Activity activity = Activity::kCompute;
  WorkClass work = WorkClass::kMatmul;  // of kCompute
  double begin = 0, end = 0;
};

/// The activity that work of a class is; kCompute for all that keeps the device's units busy.
Activity activity_of(WorkClass work);

/// Seconds.
struct TimeBreakdown {
  double total = 0;                                // accounted for
  std::array<double, kWorkClasses.size()> work{};  // by WorkClass; of communication what nothing hides
  double launch_gaps = 0;                          // within a program's run, when none of its work runs
  double data_wait = 0;                            // nothing runs, and the host waits for data
  double idle = 0;                                 // the rest
  double hidden_communication = 0;                 // beside work that is counted above: no part of the sum

  double of(WorkClass kind) const { return work[size_t(kind)]; }
  double sum() const;
};

/// A row of a breakdown, for tables.
struct BreakdownRow {
  std::string name;
  double seconds = 0;
  double percent = 0;  // of all rows, to one decimal: they add up to 100.0
};

/// All parts of the sum, in a fixed order.
std::vector<BreakdownRow> rows_of(const TimeBreakdown& breakdown);

/// Accounts for the time from 0 to `seconds`. Where several kernels run at once each gets an equal share of the time;
/// spans are cut to what is accounted for.
TimeBreakdown break_down(std::span<const ActivitySpan> spans, double seconds);

}  // namespace tokamak
