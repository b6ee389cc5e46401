#include "profile/time_breakdown.h"

#include "plan/units.h"

#include <algorithm>
#include <numeric>

namespace tokamak {
namespace {

// A span begins or ends.
struct Border {
  double at;
  int change;
  const ActivitySpan* span;
};

// How many spans of each kind there are at a moment.
class Active {
 public:
  void apply(const Border& border) {
    activities_[size_t(border.span->activity)] += border.change;
    if (border.span->activity == Activity::kCompute) kernels_[size_t(border.span->work)] += border.change;
  }

  void spend(double seconds, TimeBreakdown& breakdown) const {
    if (int all = count(Activity::kCompute)) {
      for (WorkClass work : kWorkClasses) breakdown.work[size_t(work)] += seconds * kernels_[size_t(work)] / all;
      if (count(Activity::kCommunication)) breakdown.hidden_communication += seconds;
    } else if (count(Activity::kCommunication)) {
      breakdown.work[size_t(WorkClass::kCommunication)] += seconds;
    } else if (count(Activity::kCopy)) {
      breakdown.work[size_t(WorkClass::kCopy)] += seconds;
    } else if (count(Activity::kRun)) {
      breakdown.launch_gaps += seconds;
    } else if (count(Activity::kDataWait)) {
      breakdown.data_wait += seconds;
    } else {
      breakdown.idle += seconds;
    }
  }

 private:
  int count(Activity activity) const { return activities_[size_t(activity)]; }

  std::array<int, 5> activities_{};
  std::array<int, kWorkClasses.size()> kernels_{};
};

}  // namespace

Activity activity_of(WorkClass work) {
  if (work == WorkClass::kCommunication) return Activity::kCommunication;
  return work == WorkClass::kCopy ? Activity::kCopy : Activity::kCompute;
}

double TimeBreakdown::sum() const {
  return std::accumulate(work.begin(), work.end(), 0.0) + launch_gaps + data_wait + idle;
}

std::vector<BreakdownRow> rows_of(const TimeBreakdown& breakdown) {
  std::vector<BreakdownRow> rows;
  for (WorkClass work : kWorkClasses)
    rows.push_back({work == WorkClass::kCommunication ? "communication, exposed" : std::string(to_string(work)),
                    breakdown.of(work)});
  rows.insert(rows.end(),
              {{"data wait", breakdown.data_wait}, {"launch gaps", breakdown.launch_gaps}, {"idle", breakdown.idle}});
  std::vector<double> seconds;
  for (const BreakdownRow& row : rows) seconds.push_back(row.seconds);
  std::vector<double> percents = percentages(seconds);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].percent = percents[i];
  return rows;
}

TimeBreakdown break_down(std::span<const ActivitySpan> spans, double seconds) {
  std::vector<Border> borders;
  for (const ActivitySpan& span : spans) {
    double begin = std::clamp(span.begin, 0.0, seconds), end = std::clamp(span.end, 0.0, seconds);
    if (end <= begin) continue;
    borders.push_back({begin, 1, &span});
    borders.push_back({end, -1, &span});
  }
  std::sort(borders.begin(), borders.end(), [](const Border& a, const Border& b) { return a.at < b.at; });
  TimeBreakdown breakdown{.total = seconds};
  Active active;
  double now = 0;
  for (const Border& border : borders) {
    active.spend(border.at - now, breakdown);
    active.apply(border);
    now = border.at;
  }
  active.spend(seconds - now, breakdown);
  return breakdown;
}

}  // namespace tokamak
