// A corpus of tokens in memory, for tests of what is above files.
#pragma once

#include <numeric>

#include "data/corpus.h"
#include "data/token_dataset.h"

namespace tokamak {

/// Tokens first, first + 1, ...
class CountingTokens : public TokenArray {
 public:
  CountingTokens(int64_t first, int64_t count, std::string name = "memory")
      : first_(first), count_(count), name_(std::move(name)) {}

  int64_t size() const override { return count_; }
  void read(int64_t begin, std::span<int32_t> out) const override {
    std::iota(out.begin(), out.end(), int32_t(first_ + begin));
  }
  Place place(int64_t at) const override { return {name_, at, count_ - at}; }
  std::vector<FileFingerprint> fingerprints() const override { return {{name_, count_, "xxh64:0"}}; }

 private:
  int64_t first_, count_;
  std::string name_;
};

/// Datasets of `counts` tokens each; those of dataset d are 1,000,000 * d + 0, 1, 2, ...
inline std::shared_ptr<const Corpus> counting_corpus(const std::vector<int64_t>& counts,
                                                     const std::vector<double>& weights, int64_t context,
                                                     uint64_t seed = 1) {
  Corpus::Datasets datasets;
  for (int64_t count : counts)
    datasets.push_back(make_token_dataset(
        "memory", std::make_shared<CountingTokens>(1'000'000 * int64_t(datasets.size()), count), context));
  return std::make_shared<const Corpus>(datasets, weights, context, seed);
}

}  // namespace tokamak
