// The one global order of samples: sample number -> (dataset, epoch, window), a pure function in constant time and
// memory. Workers, processes, batch sizes and restarts only decide who computes it. Tests:
// tests/data/sample_order_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tokamak {

/// Samples in a block of a mixture: in each block every dataset has its quota of them, exactly. A power of two: the
/// usual size, and the largest.
inline constexpr int64_t kMixtureBlock = 4096;
inline constexpr int64_t kMostMixtureBlock = int64_t(1) << 20;

bool is_mixture_block(int64_t size);

/// The smallest block in which the least of the weights has a sample of its own; kMostMixtureBlock if there is none.
int64_t mixture_block(std::span<const double> weights);

/// Divides a block among weights (each > 0, of any sum) by the method of largest remainders; ties go to the first.
/// Every dataset has at least one sample, so a weight below 1 / `block` counts as that much.
std::vector<int64_t> mixture_quotas(std::span<const double> weights, int64_t block = kMixtureBlock);

/// What the order knows of a dataset.
struct MixtureShare {
  int64_t windows = 0;            // > 0
  int64_t quota = kMixtureBlock;  // samples of a block; the quotas of all datasets add up to its size

  bool operator==(const MixtureShare&) const = default;
};

/// A sample's tokens: a window of a dataset.
struct SamplePlace {
  int64_t dataset = 0;
  int64_t epoch = 0;
  int64_t window = 0;

  bool operator==(const SamplePlace&) const = default;
};

/// The order. In block b of a mixture the places of the datasets are shuffled by (seed, b); the samples of a dataset,
/// counted in the order of their numbers, go through its windows epoch by epoch, each epoch in a permutation of its own
/// (see data/permutation.h). Not for several threads at once, as it remembers the last block: copy it, copies are
/// small.
class SampleOrder {
 public:
  /// `sequential`: the windows of each dataset in their own order, for validation.
  SampleOrder(uint64_t seed, std::vector<MixtureShare> shares, bool sequential = false);

  /// The place of sample `sample` (>= 0).
  SamplePlace at(int64_t sample);

  /// Its number among the samples of its dataset: epoch * windows + how many came before it in that epoch.
  struct Turn {
    int64_t dataset = 0;
    int64_t number = 0;

    bool operator==(const Turn&) const = default;
  };
  Turn turn(int64_t sample);

  /// How many of the samples 0..sample-1 are of the dataset.
  int64_t count(int64_t sample, int64_t dataset);

  uint64_t seed() const { return seed_; }
  const std::vector<MixtureShare>& shares() const { return shares_; }
  int64_t block_size() const { return block_size_; }

 private:
  void shuffle_block(int64_t block);

  uint64_t seed_;
  std::vector<MixtureShare> shares_;
  bool sequential_;
  int64_t block_size_ = 0;
  int64_t block_ = -1;       // the one remembered
  std::vector<Turn> turns_;  // of its places; numbers counted from the block's beginning
};

}  // namespace tokamak
