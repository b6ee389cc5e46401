// What a kernel of `classifier` does between its matmuls, as a row group: softmax, loss and their gradient of one
// chunk.
#pragma once

#include "graph/graph.h"
#include "ops/softcap.h"

namespace tokamak {

/// A graph of one node, a row group: logits (rows, vocab) of `dtype`, targets i32 (rows), dloss f32 (rows) ->
/// losses f32 (rows), dlogits (rows, vocab) of `dtype`. The kernel is meant to write dlogits over the logits: the body
/// reads an element's logit for the last time where it writes that element's gradient. With `narrow` there is an input
/// `inverse` f32[] as well, and dlogits are those times that in e5m2 instead. Tests:
/// tests/passes/classifier_softmax_test.cpp
Graph classifier_softmax(int64_t rows, int64_t vocab, int64_t classes, DType dtype, const Softcap& softcap = {},
                         bool narrow = false);

}  // namespace tokamak
