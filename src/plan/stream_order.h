// What waits for what between two streams, found from the bytes that launches read and write.
// Tests: tests/plan/stream_order_test.cpp.
#pragma once

#include "plan/plan.h"
#include "plan/streams.h"

namespace tokamak {

/// Sets Launch.stream and Launch.after of a plan whose values are placed. A launch waits for the last earlier launch of
/// the other stream that touches bytes which it touches too, one of both writing, unless its stream has waited for that
/// or a later one already. As a stream runs in order, one launch to wait for is enough.
void order_streams(Plan& plan, const StreamSchedule& schedule);

/// Throws InternalError unless waits go from later launches to earlier ones of the other stream, and order any two
/// launches of different streams that touch the same bytes, one of them writing.
void verify_streams(const Plan& plan);

}  // namespace tokamak
