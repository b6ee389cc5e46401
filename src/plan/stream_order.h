// What waits for what between streams, found from the bytes that launches read and write and from their effects.
// Tests: tests/plan/stream_order_test.cpp.
#pragma once

#include "plan/plan.h"
#include "plan/streams.h"

namespace tokamak {

/// Sets streams, and stream, after and after_last_run of the launches, of a plan whose values are placed. Two launches
/// conflict when they touch the same bytes, one of them writing, or have effects on the same. A launch waits for those
/// before it on other streams that it conflicts with, but for what follows from other waits and from the order of each
/// stream. Of a stream that reaches into the next run, the first launch of each other stream that conflicts with any of
/// its launches waits for all of them.
void order_streams(Plan& plan, const StreamAssignment& assignment);

/// Throws InternalError unless waits go from later launches to earlier ones of other streams and order any two that
/// conflict, and unless what may reach into the next run leaves alone what is touched between runs: inputs, results
/// and what is copied at the end.
void verify_streams(const Plan& plan);

}  // namespace tokamak
