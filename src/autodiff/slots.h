// A step over slots: equal parts of its sequences, each of which gives gradients and a loss by itself. They are added
// in one binary tree over the slots, wherever they were computed (docs/parallel.md), so that the sums have the same
// bits on any number of data ranks, and in a pipeline, where each micro-batch is one of them.
// Where a parameter is used twice, the gradients of each use have a tree of their own, and its two sums are added last:
// so they may come from two stages. Tests: tests/autodiff/slots_test.cpp, tests/mesh/slots_test.cpp.
#pragma once

#include "autodiff/optimizer.h"
#include "graph/mesh.h"

#include <map>
#include <set>
#include <string>

namespace tokamak {

struct Slots {
  int64_t count = 1;                   // a power of two
  MeshAxis ranks{"data", 1};           // each has as many of them
  bool sums_over_ranks_first = false;  // the ranks' slots of one run are neighbours, and are added right after it
  int64_t other_ranks = 1;             // of axes that may cut gradients further

  int64_t runs() const { return count / ranks.size; }  // of a rank
  int levels() const;                                  // of the tree over a rank's runs
  NormPieces norm_pieces() const { return {.most = count, .others = other_ranks}; }
};

/// What is added: gradients, and the loss.
struct SlotTerms {
  Graph model;                  // its parameters have the gradients; nothing else of it counts
  std::set<std::string> twice;  // those of them with gradients of a second use
  bool has_loss = true;
  std::string of = {};  // the program that gives them, where a step has several
};

/// What the gradients are of.
SlotTerms terms_of(const Graph& graph, const Gradients& gradients);

/// For one slot a rank: appends the whole update, and the result loss. `loss` is the slot's. A parameter that is used
/// twice stands twice in `gradients`.
void append_slot_update(GraphBuilder& g, const Gradients& gradients, ValueId loss, const Optimizer& optimizer,
                        const Slots& slots, const std::optional<LossScaling>& scaling);

/// For several: what a run gives is kept in states grad.<name>, of second uses peer_grad.<name>, and loss (kNoValue:
/// another stage has it).
void append_slot(GraphBuilder& g, const Gradients& gradients, ValueId loss, const Slots& slots);

/// By these states' names, those that stand for them in runs with odd numbers, counted from 0: grad0.<name>, ...,
/// loss0.
std::map<std::string, std::string> states_of_odd_runs(const SlotTerms& terms);

/// What comes after run i where i ends in `level` > 0 ones (in binary) and is not the last: the sum of the last 2^level
/// runs is kept in states grad<level>.<name> and loss<level>.
Graph partial_sum_graph(const SlotTerms& terms, int level);

/// What comes after the last run of a pipeline's program: grad.<name> and loss become the sums over all runs.
Graph total_graph(const SlotTerms& terms, const Slots& slots);

/// The update of all parameters; result loss. On one stage it adds up what is kept first; in a pipeline there are the
/// totals, and those of other stages' uses have come into peer_grad.<name>.
Graph slot_update_graph(const SlotTerms& terms, const Optimizer& optimizer, const Slots& slots,
                        const std::optional<LossScaling>& scaling, const OtherStages& others = {});

}  // namespace tokamak
