// What ZeRO can cut of a model's parameters over data and context ranks: an axis whose size divides no dim of a
// parameter leaves it whole (passes/seed_cuts.h). Tests: tests/advise/zero_cut_test.cpp.
#pragma once

#include "config/config.h"

#include <cstdint>
#include <vector>

namespace tokamak {

/// Of a parameter on a tensor rank.
struct MatrixSize {
  int64_t rows = 0, columns = 1;
  int64_t blocks = 1;  // of columns, each of which tensor ranks cut: queries, keys and values

  double elements() const { return double(rows * columns); }
};

/// Numbers of elements, by the axes that cut the parameters that they are of.
struct ZeroCut {
  double whole = 0, by_data = 0, by_context = 0, by_both = 0;
  double data_ranks = 1, context_ranks = 1;

  void add(const MatrixSize& parameter, const MeshConfig& mesh);

  double all() const { return whole + divisible(); }
  double divisible() const { return by_data + by_context + by_both; }
  /// Of those, what a rank has.
  double cut() const {
    return whole + by_data / data_ranks + by_context / context_ranks + by_both / (data_ranks * context_ranks);
  }
};
ZeroCut operator*(double times, ZeroCut sizes);
ZeroCut operator+(ZeroCut a, const ZeroCut& b);

/// Of a block, on one of `tensor` ranks.
std::vector<MatrixSize> block_matrices(const ModelConfig& model, int64_t tensor);
std::vector<MatrixSize> block_vectors(const ModelConfig& model, int64_t tensor);

}  // namespace tokamak
