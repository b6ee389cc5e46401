// Divides what a chunk of the model does with a micro-batch into programs that a pipeline runs at different times: the
// forward pass, and the backward pass, whole or in two parts, of which the first gives the gradient of the chunk's
// input and those of parameters that take no product of their own, and the second the rest. What a program needs of one
// before it goes through states of Role::kActivation, "act.<chunk>.<n>". Tests: tests/passes/split_chunk_test.cpp.
#pragma once

#include "graph/graph.h"

namespace tokamak {

/// A chunk's forward and backward pass in one graph, and where they divide.
struct Chunk {
  const Graph& graph;
  int64_t number = 0;
  std::string suffix;          // of the programs' names
  std::string output;          // state that gets the residual stream: the forward program makes this and all that it is
                               // made of; the rest is for backward, so that logits are never kept
  bool is_last = false;        // nobody reads the output: no program has it
  std::string input_gradient;  // state that gets the gradient of the chunk's input; empty for the first chunk
};

/// Forward and backward, or with `splits_backward` forward, backward_input, backward_weight: their names before the
/// suffix. What depends on no parameter or on nothing but parameters is made in each program that reads it, and so are
/// views.
std::vector<Graph> split_chunk(const Chunk& chunk, bool splits_backward);

}  // namespace tokamak
