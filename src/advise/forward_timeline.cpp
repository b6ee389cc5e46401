#include "advise/forward_timeline.h"

#include "advise/parameter_buckets.h"

#include <algorithm>

namespace tokamak {
namespace {

// Kernels one after the other, and collectives one after the other.
class Pass {
 public:
  Pass(int64_t blocks, const ForwardLinks& links) : links_(links), parameters_(links.bucket_bytes, links.ahead_bytes) {
    for (size_t i = 0; i < size_t(blocks) * links.parameters.size(); ++i) {
      const GatheredParameter& one = links.parameters[i % links.parameters.size()];
      parameters_.add(i, one.bytes, one.seconds);
    }
  }

  void block(const ForwardParts& parts) {
    matrix(parts.qkv, true);
    run(parts.attention);
    matrix(parts.projection, false);
    send_stream();
    run(parts.norm);
    matrix(parts.up, true);
    matrix(parts.down, false);
    send_stream();
    run(parts.norm);
  }

  const ForwardTimeline& out() const { return out_; }

 private:
  void run(double seconds) {
    double beside = std::min(std::max(0.0, links_free_ - now_), seconds / (1 - links_.units));
    now_ += seconds + beside * links_.units;
    out_.slowed += beside * links_.units;
  }

  void wait(double until) {
    out_.exposed += std::max(0.0, until - now_);
    now_ = std::max(now_, until);
  }

  // Its own time is no exposed time of parameters.
  void send_stream() {
    if (links_.stream == 0) return;
    wait(links_free_);
    now_ = links_free_ = now_ + links_.stream;
  }

  // Returns when it is there.
  double read_parameter() {
    return parameters_.read(
        read_++, [&](double seconds) { return links_free_ = std::max(now_, links_free_) + seconds + links_.latency; });
  }

  // A product that reads a matrix and its bias.
  void matrix(double seconds, bool has_gathered_input) {
    if (has_gathered_input) send_stream();
    double there = read_parameter();
    wait(std::max(there, read_parameter()));
    run(seconds);
  }

  const ForwardLinks& links_;
  ParameterBuckets parameters_;
  size_t read_ = 0;  // parameters that were
  double now_ = 0, links_free_ = 0;
  ForwardTimeline out_;
};

}  // namespace

ForwardTimeline forward_timeline(int64_t blocks, const ForwardParts& parts, const ForwardLinks& links) {
  Pass pass(blocks, links);
  for (int64_t block = 0; block < blocks; ++block) pass.block(parts);
  return pass.out();
}

}  // namespace tokamak
