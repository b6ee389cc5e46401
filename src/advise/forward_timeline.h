// When parameters that ZeRO cuts are gathered beside a forward pass, in closed form: in buckets, each of which is asked
// for where the one before it is read first (passes/bucket.h), and in one queue with what tensor ranks send.
// Tests: tests/advise/forward_timeline_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace tokamak {

/// Seconds of the kernels of a block's forward pass. `norm` is of one of the two.
struct ForwardParts {
  double qkv = 0, attention = 0, projection = 0, up = 0, down = 0, norm = 0;
};

struct GatheredParameter {
  double bytes = 0;    // when it is gathered
  double seconds = 0;  // without the collective's latency
};

struct ForwardLinks {
  std::array<GatheredParameter, 8> parameters;  // of a block: matrix and bias of qkv, projection, up and down
  double bucket_bytes = 0;
  double ahead_bytes = std::numeric_limits<double>::infinity();  // a larger parameter is asked for where it is read
  double latency = 0;                                            // of a bucket's collective
  double stream = 0;                                             // of tensor ranks' stream, a gather or a scatter
  double units = 0;  // share of the device that a collective takes from kernels beside it
};

/// Seconds of a forward pass.
struct ForwardTimeline {
  double exposed = 0;  // in which nothing runs, as a kernel or the stream waits for parameters
  double slowed = 0;   // that kernels take longer beside collectives
};

ForwardTimeline forward_timeline(int64_t blocks, const ForwardParts& parts, const ForwardLinks& links);

}  // namespace tokamak
