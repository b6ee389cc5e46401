// The plan: where every value lives and in which order which kernels run, known before anything is allocated. A pure
// function of graph and target.
#pragma once

#include "graph/graph.h"
#include "graph/op_def.h"
#include "graph/target.h"

namespace tokamak {

/// Storage of a value: `offset` bytes into the arena, or the storage of an argument.
struct Location {
  int64_t offset = -1;          // into the arena
  ValueId argument = kNoValue;  // else the argument that owns the storage
};

/// One kernel: a node that does work (views do none).
struct Launch {
  int node = 0;                 // index into graph.nodes()
  Cost cost;
  double seconds = 0;           // predicted on the target
  bool memory_bound = false;    // the prediction is limited by bandwidth
};

/// At the end of the run: storage of `target` (an argument) = value. Only for updates that could not be made in place.
struct CopyBack {
  ValueId target = kNoValue;
  ValueId value = kNoValue;
};

struct Plan {
  Graph graph;
  std::vector<Location> locations;   // by value
  std::vector<Launch> launches;      // in order of execution
  std::vector<CopyBack> copies;
  int64_t arena_bytes = 0;           // = the peak of all intermediate values, alignment included
  int64_t parameter_bytes = 0;       // storage of the arguments, by kind
  int64_t state_bytes = 0;
  int64_t input_bytes = 0;
  double seconds = 0;                // predicted for the whole run

  int64_t total_bytes() const { return arena_bytes + parameter_bytes + state_bytes + input_bytes; }
};

/// Orders, places and prices everything. Offsets are multiples of 64 bytes.
Plan make_plan(Graph graph, const Target& target);

/// Predicted seconds of one kernel: the larger of arithmetic and memory time, plus the launch.
Launch price(const Graph& graph, int node, const Target& target);

}  // namespace tokamak
