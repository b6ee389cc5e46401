// What a backend is to the executor: memory and kernels. It holds no policy: which node runs when, and where its
// operands lie, is the plan's business.
#pragma once

#include "graph/graph.h"
#include "graph/target.h"

#include <memory>
#include <span>

namespace tokamak {

/// One node made ready to run.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Scratch memory that run() needs; one piece serves all kernels of a program, which run one after the other.
  virtual int64_t workspace_bytes() const { return 0; }
  /// Called once, before the first run, with workspace_bytes() or more.
  virtual void use_workspace(void*) {}
  /// Pointers in the backend's memory, in the order of the node's inputs and outputs. An output may be the storage of
  /// an input where the op's in_place allows it.
  virtual void run(std::span<const void* const> inputs, std::span<void* const> outputs) = 0;
};

/// Memory of the backend; aligned to 64 bytes, zeroed.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* data() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::unique_ptr<Memory> allocate(int64_t bytes) = 0;
  virtual std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) = 0;
  virtual void copy_in(void* to, const void* from, int64_t bytes) = 0;   // host to backend
  virtual void copy_out(void* to, const void* from, int64_t bytes) = 0;  // backend to host; waits for what came before
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
};

}  // namespace tokamak
