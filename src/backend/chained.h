// Kernels of a chain begin while those before them still run, and wait for each value that they read instead of for the
// kernels that make it. What they make lies in memory of the chain, each value in a place of its own, where all bits of
// an element are ones until it is written (which no kernel writes: a NaN has other bits). exec/chain.h says which
// launches are a chain.
#pragma once

#include "graph/graph.h"

#include <memory>
#include <vector>

namespace tokamak {

class Kernel;

/// A node's part in a chain.
struct ChainLink {
  /// Of the node's inputs: whether a kernel that may still run writes it. Where none is awaited, the kernel waits for
  /// all kernels before it. An input that is not awaited was there when the chain began, or is the node's own state.
  std::vector<bool> awaited;
  /// What the kernel makes empty again: places of the chain whose values nobody reads any more. A multiple of 16 bytes.
  void* emptied = nullptr;
  int64_t emptied_bytes = 0;

  bool waits_for_kernels() const;
};

/// What a backend whose kernels can do so has (Backend::chains).
class ChainCompiler {
 public:
  virtual ~ChainCompiler() = default;
  virtual bool can_chain(const Graph& graph, const Node& node) const = 0;
  /// can_chain() must hold.
  virtual std::unique_ptr<Kernel> compile_link(const Graph& graph, const Node& node, const ChainLink& link) = 0;
};

}  // namespace tokamak
