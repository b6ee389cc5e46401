// What of a model's sizes or of a batch costs time on a GPU, and how much: lines for `plan` and `explain`.
// Tests: tests/advise/advice_test.cpp.
#pragma once

#include "advise/layout.h"
#include "graph/target.h"

#include <string>
#include <vector>

namespace tokamak {

/// A matrix product of a step: (m, k) x (k, n), `count` times in a micro-batch.
struct MatmulShape {
  std::string name;  // "MLP up", "its weights' gradient"
  int64_t m = 0, n = 0, k = 0;
  int64_t count = 1;

  double flops() const { return 2 * double(m) * double(n) * double(k) * double(count); }
};

/// Those of one rank's blocks and classifier, forward and backward.
std::vector<MatmulShape> list_matmuls(const ModelConfig& model, const ParallelLayout& layout, const Target& target);

struct Advice {
  std::string text;
  double gain = 0;  // share of the step's time that it would save; 0: none, or not known
};

/// Sizes that are no multiples of 8, 64 and 128, heads that do not divide, the vocabulary, waves of tiles that are not
/// full, and batches so small that memory or the update limits them; what gains most first.
std::vector<Advice> advise(const ModelConfig& model, const ParallelLayout& layout, const Target& target);

/// A line for each; empty without any.
std::string format_advice(const std::vector<Advice>& advice);

/// The layout that a run is configured for.
ParallelLayout layout_of(const RunConfig& config);

}  // namespace tokamak
