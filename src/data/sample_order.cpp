#include "data/sample_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "data/permutation.h"

namespace tokamak {

namespace {

// Keeps the random numbers of blocks apart from those of permutations, which have the epoch there.
constexpr uint64_t kBlockStream = uint64_t(1) << 63;

/// Each dataset has a key of its own, so that two of the same size are not shuffled alike; the first has the seed.
uint64_t key_of(uint64_t seed, int64_t dataset) { return seed + uint64_t(dataset) * 0x9E3779B97F4A7C15u; }

}  // namespace

int64_t mixture_block(std::span<const double> weights) {
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double least = *std::min_element(weights.begin(), weights.end()) / sum;
  int64_t block = kMixtureBlock;
  while (block < kMostMixtureBlock && least * double(block) < 1) block *= 2;
  return block;
}

std::vector<int64_t> mixture_quotas(std::span<const double> weights, int64_t block) {
  auto count = int64_t(weights.size());
  TOKAMAK_CHECK(count > 0 && count <= block, "a mixture of {} datasets", count);
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> quotas;
  std::vector<std::pair<double, size_t>> remainders;
  for (size_t i = 0; i < weights.size(); ++i) {
    double share = weights[i] / sum * double(block);
    quotas.push_back(int64_t(share));
    remainders.emplace_back(share - std::floor(share), i);
  }
  std::stable_sort(remainders.begin(), remainders.end(), [](auto& a, auto& b) { return a.first > b.first; });
  int64_t left = block - std::accumulate(quotas.begin(), quotas.end(), int64_t(0));
  for (size_t i = 0; i < size_t(left); ++i) ++quotas[remainders[i % remainders.size()].second];
  for (int64_t& quota : quotas) {
    if (quota > 0) continue;
    --*std::max_element(quotas.begin(), quotas.end());
    quota = 1;
  }
  return quotas;
}

bool is_mixture_block(int64_t size) {
  return size >= kMixtureBlock && size <= kMostMixtureBlock && (size & (size - 1)) == 0;
}

SampleOrder::SampleOrder(uint64_t seed, std::vector<MixtureShare> shares, bool sequential)
    : seed_(seed), shares_(std::move(shares)), sequential_(sequential) {
  for (const MixtureShare& share : shares_) {
    TOKAMAK_CHECK(share.windows > 0 && share.quota > 0, "{} windows, quota {}", share.windows, share.quota);
    block_size_ += share.quota;
  }
  TOKAMAK_CHECK(is_mixture_block(block_size_), "quotas of {} in a block", block_size_);
}

SampleOrder::Turn SampleOrder::turn(int64_t sample) {
  TOKAMAK_CHECK(sample >= 0, "sample {}", sample);
  if (shares_.size() == 1) return {0, sample};
  int64_t block = sample / block_size_;
  if (block != block_) shuffle_block(block);
  Turn turn = turns_[size_t(sample % block_size_)];
  turn.number += block * shares_[size_t(turn.dataset)].quota;
  return turn;
}

SamplePlace SampleOrder::at(int64_t sample) {
  Turn turn = this->turn(sample);
  int64_t windows = shares_[size_t(turn.dataset)].windows;
  int64_t epoch = turn.number / windows, place = turn.number % windows;
  if (!sequential_) place = Permutation(windows, key_of(seed_, turn.dataset), uint64_t(epoch))(place);
  return {turn.dataset, epoch, place};
}

int64_t SampleOrder::count(int64_t sample, int64_t dataset) {
  TOKAMAK_CHECK(sample >= 0 && dataset >= 0 && dataset < int64_t(shares_.size()), "{} samples, dataset {}", sample,
                dataset);
  if (shares_.size() == 1) return sample;
  int64_t block = sample / block_size_, rest = sample % block_size_;
  if (block != block_) shuffle_block(block);
  return block * shares_[size_t(dataset)].quota +
         std::count_if(turns_.begin(), turns_.begin() + rest,
                       [&](const Turn& turn) { return turn.dataset == dataset; });
}

// Fisher and Yates's shuffle; a remainder of 32 random bits by at most 2^20 favours no place by more than 3e-4 of its
// share.
void SampleOrder::shuffle_block(int64_t block) {
  turns_.clear();
  for (size_t dataset = 0; dataset < shares_.size(); ++dataset)
    turns_.insert(turns_.end(), size_t(shares_[dataset].quota), {int64_t(dataset), 0});
  for (auto left = uint64_t(block_size_); left > 1; --left)
    std::swap(turns_[left - 1], turns_[philox4x32(seed_, left, kBlockStream | uint64_t(block))[0] % left]);
  std::vector<int64_t> seen(shares_.size());
  for (Turn& turn : turns_) turn.number = seen[size_t(turn.dataset)]++;
  block_ = block;
}

}  // namespace tokamak
