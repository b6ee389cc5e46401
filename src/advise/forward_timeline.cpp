#include "advise/forward_timeline.h"

#include <algorithm>
#include <vector>

namespace tokamak {
namespace {

// Of parameters in the order in which they are read.
struct Bucket {
  size_t first = 0;
  double bytes = 0, seconds = 0, there = 0;
};

// Kernels one after the other, and collectives one after the other.
class Pass {
 public:
  Pass(int64_t blocks, const ForwardLinks& links) : links_(links) {
    for (size_t i = 0; i < size_t(blocks) * links.parameters.size(); ++i) {
      const GatheredParameter& one = links.parameters[i % links.parameters.size()];
      if (buckets_.empty() || buckets_.back().bytes + one.bytes > links.bucket_bytes) buckets_.push_back({.first = i});
      buckets_.back().bytes += one.bytes;
      buckets_.back().seconds += one.seconds;
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

  void send(Bucket& bucket) {
    bucket.there = links_free_ = std::max(now_, links_free_) + bucket.seconds + links_.latency;
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

  // Whether it is asked for where the one before it is read.
  bool is_ahead(size_t bucket) const { return bucket > 0 && buckets_[bucket].bytes <= links_.ahead_bytes; }

  void read_parameter() {
    if (bucket_ + 1 < buckets_.size() && buckets_[bucket_ + 1].first == read_) ++bucket_;
    if (buckets_[bucket_].first == read_) {
      if (!is_ahead(bucket_)) send(buckets_[bucket_]);
      if (bucket_ + 1 < buckets_.size() && is_ahead(bucket_ + 1)) send(buckets_[bucket_ + 1]);
    }
    ++read_;
  }

  // A product that reads a matrix and its bias.
  void matrix(double seconds, bool has_gathered_input) {
    if (has_gathered_input) send_stream();
    read_parameter();
    double there = buckets_[bucket_].there;
    read_parameter();
    wait(std::max(there, buckets_[bucket_].there));
    run(seconds);
  }

  const ForwardLinks& links_;
  std::vector<Bucket> buckets_;
  size_t bucket_ = 0, read_ = 0;  // of what is read; parameters that were
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
