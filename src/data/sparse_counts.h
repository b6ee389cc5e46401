// How often each of very many things was used, of which few were. Tests: tests/data/sparse_counts_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

namespace tokamak {

class SparseCounts {
 public:
  struct Count {
    int64_t item = 0;
    int64_t uses = 0;

    bool operator==(const Count&) const = default;
  };

  /// `most_fresh`: uses that are kept one by one until they are counted together.
  explicit SparseCounts(int64_t most_fresh = int64_t(1) << 22) : most_fresh_(most_fresh) {}

  void add(int64_t item) {
    fresh_.push_back(item);
    if (int64_t(fresh_.size()) >= most_fresh_) merge();
  }

  /// Of those that were used, in the order of their numbers.
  const std::vector<Count>& counts() {
    merge();
    return counts_;
  }

 private:
  void merge();

  int64_t most_fresh_;
  std::vector<int64_t> fresh_;
  std::vector<Count> counts_;
};

}  // namespace tokamak
