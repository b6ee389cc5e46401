#include "advise/backward_timeline.h"

#include "advise/parameter_buckets.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tokamak {
namespace {

constexpr size_t kMostWaitingProducts = 3, kMostUnsentGradients = 8;
constexpr double kLeastShareOfWait = 0.25;

// Of products that wait, by their seconds: the shortest that lasts for `rest`, else the longest.
size_t choose_product(const std::vector<double>& seconds, double rest) {
  auto is_better = [&](double x, double y) {
    return (x >= rest) == (y >= rest) ? (x >= rest ? x < y : x > y) : x >= rest;
  };
  return size_t(std::min_element(seconds.begin(), seconds.end(), is_better) - seconds.begin());
}

enum Matrix : size_t { kDown, kUp, kProjection, kQkv, kMatrices };

// Kernels one after the other, and collectives one after the other.
class Backward {
 public:
  Backward(int64_t blocks, const BackwardParts& parts, const Work& again, const BlockLinks& links)
      : parts_(parts), again_(again), links_(links), gathered_(links.gather_bytes, links.ahead_bytes) {
    for (size_t i = 0; i < size_t(blocks) * kMatrices; ++i) {
      const MatrixLinks& one = links.matrices[read_at(i % kMatrices)];
      if (one.parameters > 0) gathered_.add(i, one.parameter_bytes, one.parameters);
    }
  }

  void block(bool is_last) {
    gather_stream();
    if (again_.matmul > 0) gather(kUp);
    run(again_.seconds());
    mlp();
    gather_stream();
    gather(kProjection);
    run(parts_.projection_input);
    weights(kProjection);
    links_.sends_keys_early ? attention_with_early_keys(is_last) : attention();
    ++block_;
  }

  BackwardTimeline end() {
    while (!late_.empty()) take_late(0);
    send_late();
    for (bool scattered : {false, true}) send_bucket(scattered);
    wait(links_free_, 0, out_.gradients);
    return out_;
  }

 private:
  struct Bucket {
    double filled = 0, seconds = 0;
  };

  void run(double seconds) {
    double beside = std::min(std::max(0.0, links_free_ - now_), seconds / (1 - links_.units));
    now_ += seconds + beside * links_.units;
    out_.slowed += beside * links_.units;
  }

  // Returns when it is through.
  double send(double seconds) {
    if (seconds == 0) return 0;
    return links_free_ = std::max(now_, links_free_) + seconds;
  }

  // Of what is waited for, `own` seconds are of a kind; the rest are gradients that stand before it.
  void wait(double until, double own, double& kind) {
    double seconds = std::max(0.0, until - now_), of_kind = std::min(seconds, own);
    kind += of_kind;
    out_.gradients += seconds - of_kind;
    now_ += seconds;
  }

  // The same, with products for weights meanwhile.
  void wait_with_products(double until, double own, double& kind) {
    double least = std::max(0.0, kLeastShareOfWait * (until - now_));
    while (until - now_ > least && !late_.empty()) {
      std::vector<double> seconds;
      for (Matrix matrix : late_) seconds.push_back(weight_seconds(matrix));
      take_late(choose_product(seconds, until - now_));
    }
    wait(until, own, kind);
  }

  void gather_stream() {
    double there = send(links_.stream);
    send_late();
    wait_with_products(there, links_.stream, out_.stream);
  }

  // What comes before GELU is computed again first, by the matrix up.
  size_t read_at(size_t matrix) const { return again_.matmul > 0 && matrix <= kUp ? kUp - matrix : matrix; }

  void gather(Matrix matrix) {
    size_t place = block_ * kMatrices + read_at(matrix);
    wait(gathered_.read(place, [&](double seconds) { return send(seconds); }), 0, out_.gradients);
  }

  // A bucket is sent with the last that fits into it.
  void send_gradient(Matrix matrix) {
    const MatrixLinks& gradient = links_.matrices[matrix];
    send(gradient.alone);
    Bucket& bucket = buckets_[gradient.is_scattered];
    bucket.filled += gradient.share;
    bucket.seconds += gradient.in_bucket;
    if (bucket.filled + links_.matrices[next_of_bucket(matrix)].share > 1) send_bucket(gradient.is_scattered);
  }
  size_t next_of_bucket(size_t matrix) const {
    bool scattered = links_.matrices[matrix].is_scattered;
    do {
      matrix = (matrix + 1) % kMatrices;
    } while (links_.matrices[matrix].is_scattered != scattered);
    return matrix;
  }
  void send_bucket(bool scattered) {
    Bucket& bucket = buckets_[scattered];
    if (bucket.seconds > 0) send(bucket.seconds + links_.bucket_latency);
    bucket = {};
  }

  double weight_seconds(Matrix matrix) const {
    const double seconds[kMatrices] = {parts_.down_weight, parts_.up_weight, parts_.projection_weight,
                                       parts_.qkv_weight};
    return seconds[matrix];
  }

  // The product for a matrix' gradient, unless attention has it later.
  void weights(Matrix matrix) {
    if (!links_.sends_keys_early) product(matrix);
  }
  // It waits for what there is of the stream to hide (passes/overlap.h).
  void product(Matrix matrix) {
    if (links_.stream == 0 || links_.computes_weights_later) return run(weight_seconds(matrix)), send_gradient(matrix);
    late_.push_back(matrix);
    if (late_.size() > kMostWaitingProducts) take_late(0);
  }
  void take_late(size_t which) {
    Matrix matrix = late_[which];
    late_.erase(late_.begin() + long(which));
    run(weight_seconds(matrix));
    if (unsent_.size() == kMostUnsentGradients) send_late();
    unsent_.push_back(matrix);
  }
  void send_late() {
    for (Matrix matrix : std::exchange(unsent_, {})) send_gradient(matrix);
  }

  void scatter_stream(Matrix matrix) {
    weights(matrix);
    wait_with_products(send(links_.stream), links_.stream, out_.stream);
    run(parts_.norm);
    send(links_.norm_vectors);
  }

  void mlp() {
    gather(kDown);
    weights(kDown);
    run(parts_.down_input);
    send(links_.bias_vector);
    if (again_.matmul == 0) gather(kUp);
    run(parts_.up_input);
    scatter_stream(kUp);
  }

  void queries_keys_values() {
    send(links_.bias_vector);
    gather(kQkv);
    run(parts_.qkv_input);
    scatter_stream(kQkv);
  }

  void attention() {
    wait_with_products(send(links_.keys), links_.keys, out_.keys);
    run(parts_.attention);
    wait_with_products(send(links_.keys), links_.keys, out_.keys);
    queries_keys_values();
  }

  // What was left comes while gradients of keys and values are scattered and the block below has its own gathered.
  void attention_with_early_keys(bool is_last) {
    wait_with_products(keys_there_, links_.keys, out_.keys);
    run(parts_.attention);
    double scattered = send(links_.keys);
    if (!is_last) {
      keys_there_ = send(links_.keys);
      send_late();
    }
    for (Matrix matrix : {kQkv, kDown, kUp, kProjection}) product(matrix);
    wait_with_products(scattered, links_.keys, out_.keys);
    queries_keys_values();
  }

  const BackwardParts& parts_;
  const Work& again_;
  const BlockLinks& links_;
  double now_ = 0, links_free_ = 0, keys_there_ = 0;
  Bucket buckets_[2];
  ParameterBuckets gathered_;
  size_t block_ = 0;                   // of what is read
  std::vector<Matrix> late_, unsent_;  // whose products wait; and whose gradients do
  BackwardTimeline out_;
};

}  // namespace

BackwardTimeline backward_timeline(int64_t blocks, const BackwardParts& parts, const Work& again,
                                   const BlockLinks& links) {
  Backward pass(blocks, parts, again, links);
  for (int64_t block = 1; block <= blocks; ++block) pass.block(block == blocks);
  return pass.end();
}

}  // namespace tokamak
