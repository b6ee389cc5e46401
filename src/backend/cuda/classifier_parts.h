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
  NumberFormat logits = format;  // of what the logits are computed from
  bool has_own_operands() const { return logits != format; }
};

ClassifierSizes read_classifier(const Graph& graph, const Node& node);

/// x W^T: (rows, vocab). Of operands of their own, scales of both follow these.
Graph classifier_logits(const ClassifierSizes& sizes, int64_t rows);
/// dlogits W: (rows, width).
Graph classifier_dx(const ClassifierSizes& sizes, int64_t rows);
/// dlogits^T x in f32, (vocab, width): alone, or added to what stands in dW.
Graph classifier_dweight(const ClassifierSizes& sizes, int64_t rows, bool adds);

}  // namespace tokamak::cuda
