// The matmuls of a chunk of the classifier, as graphs whose last node each is.
#pragma once

#include "graph/graph.h"
#include "ops/number_format.h"
#include "ops/softcap.h"

namespace tokamak::cuda {

struct ClassifierSizes {
  int64_t rows, width, vocab, chunk, classes;
  DType dtype;          // of x, W and the logits
  NumberFormat format;  // of the products' operands
  Softcap softcap;
  NumberFormat logits = format;     // of what the logits are computed from
  NumberFormat gradients = format;  // of dlogits
  bool has_own_operands() const { return logits != format; }
  bool has_narrow_gradient() const { return gradients != format; }
};

ClassifierSizes read_classifier(const Graph& graph, const Node& node);

/// x in eight bits transposed: (width, rows).
Graph classifier_turned_x(const ClassifierSizes& sizes, int64_t rows);
/// x W^T: (rows, vocab). Of operands of their own, scales of both follow these.
Graph classifier_logits(const ClassifierSizes& sizes, int64_t rows);
/// dlogits W: (rows, width). Of eight bits, W is transposed, and scales of both follow.
Graph classifier_dx(const ClassifierSizes& sizes, int64_t rows);
/// dlogits^T x in f32, (vocab, width): alone, or added to what stands in dW. Of eight bits, x is transposed (width,
/// rows), and scales of both follow.
Graph classifier_dweight(const ClassifierSizes& sizes, int64_t rows, bool adds);

}  // namespace tokamak::cuda
