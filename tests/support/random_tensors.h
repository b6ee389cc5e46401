// Random arguments for a graph, and comparison of what the interpreter makes of two graphs.
#pragma once

#include "base/random.h"
#include "graph/graph.h"
#include "graph/host_tensor.h"
#include "ops/interpret.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace tokamak::test {

/// Elements in [-1, 1) for floats, representable in the dtype; integers in [0, below).
inline HostTensor random_tensor(const ValueType& type, uint64_t seed, int64_t below = 4) {
  HostTensor tensor(type);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double u = uniform_float(philox4x32(seed, uint64_t(i))[0]);
    tensor[i] = is_float(type.dtype) ? round_to(type.dtype, 2 * u - 1) : std::floor(u * double(below));
  }
  return tensor;
}

/// Random numbers (B, T) become where the document of each position begins: with as many documents as other numbers.
inline void make_starts(HostTensor& tensor) {
  int64_t T = tensor.shape().back();
  for (auto row = tensor.data.begin(); row != tensor.data.end(); row += T) {
    std::sort(row, row + T);
    double before = NAN, first = 0;
    for (int64_t t = 0; t < T; ++t) {
      if (row[t] != before) first = double(t);
      before = std::exchange(row[t], first);
    }
  }
}

/// One tensor for each argument of the graph, in order. The same seed gives arguments of one index the same elements.
/// Names that end in "_positive" get elements in [0.5, 1.5]; "documents..." are starts of documents.
inline std::vector<HostTensor> random_arguments(const Graph& graph, uint64_t seed = 1, int64_t below = 4) {
  std::vector<HostTensor> tensors;
  for (const Argument& argument : graph.arguments()) {
    const ValueType& type = graph.type(argument.value);
    tensors.push_back(random_tensor(type, seed * 1000 + tensors.size(), below));
    if (argument.name.ends_with("_positive"))
      for (double& v : tensors.back().data) v = round_to(type.dtype, v / 2 + 1);
    if (argument.name.starts_with("documents")) make_starts(tensors.back());
  }
  return tensors;
}

/// Largest |a - b| / max(1, |b|); infinity where the shapes differ or one of them alone is NaN.
inline double difference(const HostTensor& a, const HostTensor& b) {
  if (a.shape() != b.shape()) return INFINITY;
  double worst = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    double d = std::fabs(a[i] - b[i]) / std::max(1.0, std::fabs(b[i]));
    worst = std::max(worst, std::isnan(d) ? INFINITY : d);
  }
  return worst;
}

/// Expects the same results and updates within `tolerance` (0: the same bits) from the same arguments.
inline void expect_same_meaning(const Graph& a, const Graph& b, double tolerance = 0, uint64_t seed = 1,
                                int64_t below = 4) {
  std::vector<HostTensor> arguments = random_arguments(a, seed, below);
  Interpretation x = interpret(a, arguments), y = interpret(b, arguments);
  ASSERT_EQ(x.results.size(), y.results.size());
  ASSERT_EQ(x.updates.size(), y.updates.size());
  for (size_t i = 0; i < x.results.size(); ++i)
    EXPECT_LE(difference(x.results[i], y.results[i]), tolerance) << "result " << a.results()[i].name;
  for (size_t i = 0; i < x.updates.size(); ++i)
    EXPECT_LE(difference(x.updates[i], y.updates[i]), tolerance) << "update " << i;
}

}  // namespace tokamak::test
