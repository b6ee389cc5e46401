// Parameters that are gathered in buckets, in closed form, as passes/bucket.h has them: each bucket is asked for where
// the one before it is read first. Tests: tests/advise/forward_timeline_test.cpp, backward_timeline_test.cpp.
#pragma once

#include <cstddef>
#include <vector>

namespace tokamak {

class ParameterBuckets {
 public:
  /// Bytes of a bucket; and of one that is gathered ahead, a larger one is asked for where it is read.
  ParameterBuckets(double most, double ahead) : most_(most), ahead_(ahead) {}

  /// In the order in which they are read; `place` grows.
  void add(size_t place, double bytes, double seconds) {
    if (buckets_.empty() || buckets_.back().bytes + bytes > most_) buckets_.push_back({.first = place});
    buckets_.back().bytes += bytes;
    buckets_.back().seconds += seconds;
  }

  /// When the one at this place is there. `send(seconds)` of a bucket returns when it is through. 0: there are none.
  template <typename Send>
  double read(size_t place, const Send& send) {
    if (buckets_.empty()) return 0;
    if (read_ + 1 < buckets_.size() && buckets_[read_ + 1].first == place) ++read_;
    Bucket& bucket = buckets_[read_];
    if (bucket.first == place) {
      if (!is_ahead(read_)) bucket.there = send(bucket.seconds);
      if (read_ + 1 < buckets_.size() && is_ahead(read_ + 1))
        buckets_[read_ + 1].there = send(buckets_[read_ + 1].seconds);
    }
    return bucket.there;
  }

 private:
  struct Bucket {
    size_t first = 0;
    double bytes = 0, seconds = 0, there = 0;
  };

  bool is_ahead(size_t bucket) const { return bucket > 0 && buckets_[bucket].bytes <= ahead_; }

  double most_, ahead_;
  std::vector<Bucket> buckets_;
  size_t read_ = 0;  // the bucket of what is read
};

}  // namespace tokamak
