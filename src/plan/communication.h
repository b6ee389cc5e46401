// What a plan's collectives send, how long that takes and what of it nothing hides, by op and axis.
// Tests: tests/plan/communication_test.cpp.
#pragma once

#include "plan/timeline.h"

namespace tokamak {

/// Of the collectives of one op on one axis, or of all.
struct Communication {
  std::string op, axis;  // of all: empty
  int64_t size = 0;      // ranks of the axis
  int collectives = 0, tensors = 0;
  double link_bytes = 0;  // that a rank sends
  double seconds = 0;     // that they take on the timeline
  double exposed = 0;     // seconds of those in which nothing else runs

  void add(const Communication& other);
};

/// In order of op, then axis.
std::vector<Communication> sum_communication(const Plan& plan, const std::vector<Span>& timeline);

/// "data:4"
std::string axis_label(const Communication& communication);

}  // namespace tokamak
