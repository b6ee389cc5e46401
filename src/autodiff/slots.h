// A step over slots: equal parts of its sequences, each of which gives gradients and a loss by itself. They are added
// in one binary tree over the slots, wherever they were computed (docs/parallel.md), so that the sums have the same
// bits on any number of data ranks. Tests: tests/autodiff/slots_test.cpp, tests/mesh/slots_test.cpp.
#pragma once

#include "autodiff/optimizer.h"
#include "graph/mesh.h"

namespace tokamak {

struct Slots {
  int64_t count = 1;                   // a power of two
  MeshAxis ranks{"data", 1};           // each has as many of them
  bool sums_over_ranks_first = false;  // the ranks' slots of one run are neighbours, and are added right after it
  int64_t other_ranks = 1;             // of axes that may cut gradients further

  int64_t runs() const { return count / ranks.size; }  // of a rank
  NormPieces norm_pieces() const { return {.most = count, .others = other_ranks}; }
};

/// For one slot a rank: appends the whole update, and the result loss. `loss` is the slot's.
void append_slot_update(GraphBuilder& g, const Gradients& gradients, ValueId loss, const OptimizerConfig& config,
                        const Slots& slots, const std::optional<LossScaling>& scaling);

/// For several: what a run gives is kept in states grad.<name> and loss.
void append_slot(GraphBuilder& g, const Gradients& gradients, ValueId loss, const Slots& slots);

/// What comes after run i, counted from 0, where i ends in `level` ones (in binary) and is not the last: the sum of the
/// last 2^level runs is kept in states grad<level>.<name> and loss<level>. `model` has the parameters.
Graph partial_sum_graph(const Graph& model, int level);

/// What comes after the last run: adds up what is kept, and updates all parameters; result loss.
Graph slot_update_graph(const Graph& model, const OptimizerConfig& config, const Slots& slots,
                        const std::optional<LossScaling>& scaling);

}  // namespace tokamak
