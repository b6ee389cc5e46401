// What of a model's sizes or of a batch costs time on a GPU, and how much: lines for `plan` and `explain`.
// Tests: tests/advise/advice_test.cpp.
#pragma once

#include "advise/layout.h"
#include "graph/platform.h"

#include <string>
#include <vector>

namespace tokamak {

/// A matrix product of a step: (m, k) x (k, n), `count` times in a micro-batch.
struct MatmulShape {
  std::string name;  // "attn.c_attn.weight, gradient of its input"
  int64_t m = 0, n = 0, k = 0;
  bool is_table = false;  // with the matrix of the classifier, or a table of embeddings
  double count = 1;
  double seconds = 0;  // all of them

  double flops() const { return 2 * double(m) * double(n) * double(k) * count; }
};

/// What one rank does for a micro-batch, without what it sends.
struct RankWork {
  std::vector<MatmulShape> matmuls;  // of its blocks and the classifier, forward and backward
  double attention = 0, update = 0;  // seconds, the update's for each micro-batch
  double seconds = 0;                // of all
};

/// As the compiler makes it of two numbers of blocks.
RankWork rank_work(const RunConfig& run, const ParallelLayout& layout, const Platform& platform);

struct Advice {
  std::string text;
  double gain = 0;  // share of the step's time that it would save; 0: none, or not known
};

/// Sizes that are no multiples of 8, 64 and 128, heads that do not divide, the vocabulary, waves of tiles that are not
/// full, and batches so small that memory or the update limits them; what gains most first.
std::vector<Advice> advise(const RunConfig& run, const ParallelLayout& layout, const Platform& platform);

/// A line for each; empty without any.
std::string format_advice(const std::vector<Advice>& advice);

/// The layout that a run is configured for.
ParallelLayout layout_of(const RunConfig& config);

}  // namespace tokamak
