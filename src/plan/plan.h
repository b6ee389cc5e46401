// The plan: where every value lives and in which order which kernels run, known before anything is allocated. A pure
// function of graph and platform. Tests: tests/plan.
#pragma once

#include "cost/price.h"
#include "graph/graph.h"

namespace tokamak {

/// Where a value begins: so many bytes into the arena, or into the storage of an argument.
struct Location {
  int64_t offset = -1;
  ValueId argument = kNoValue;  // that owns the storage; none: the arena
};

/// A piece of the arena and how long it is taken: by one value, its views, and outputs that took it over in place.
struct Block {
  int64_t offset = -1;
  int64_t bytes = 0;
  int first = 0;    // taken from this node on
  int last = 0;     // to this one, included; the number of nodes: to the end of the run
  ValueIds values;  // in order of definition, without views
  /// Of a copy that the stream of collectives makes and reads: to this node by what others make, as they would have to
  /// wait for the stream; what the stream makes later may have the place behind `last`. -1: `last` holds for all.
  int held = -1;
};

/// Launches of one stream run one after the other, beside those of the others.
struct PlannedStream {
  std::string name;           // "compute", "side", "communication"
  int resource = 0;           // what its launches keep busy: 0, the device's units, 1, links to other ranks
  bool ends_with_run = true;  // before whatever is asked for after the run; else it may reach into the next run
};

/// One kernel, a node that does work (views do none), and its price.
struct Launch : Price {
  int node = 0;            // index into graph.nodes()
  int stream = 0;          // index into streams
  std::vector<int> after;  // launches of other streams that must be done before; only what does not follow
  // Streams that reach into this run and of which the run before must be done.
  std::vector<int> after_last_run;
};

/// At the end of the run: storage of `target` (an argument) = value. Only for updates that could not be made in place.
/// No copy writes what another one reads.
struct CopyBack {
  ValueId target = kNoValue;
  ValueId value = kNoValue;
};

struct Plan {
  Graph graph;                      // as given, plus what separate_updates appends (plan/storage.h)
  std::vector<Location> locations;  // by value
  std::vector<Block> blocks;        // of the arena
  /// The first is that of everything but kernels, too, and runs begin with it.
  std::vector<PlannedStream> streams{{"compute"}};
  std::vector<Launch> launches;  // in order of execution; on several streams still an order that is right on one
  std::vector<CopyBack> copies;
  int64_t arena_bytes = 0;      // = the peak of all intermediate values, alignment included
  int64_t live_bytes = 0;       // lower bound of arena_bytes: the most that is alive at one time
  int64_t parameter_bytes = 0;  // storage of the arguments, by kind
  int64_t state_bytes = 0;
  int64_t input_bytes = 0;
  int64_t scratch_bytes = 0;  // of the kernels: the most that one of them takes, for each stream
  double seconds = 0;         // predicted for the whole run: the end of its timeline (plan/timeline.h)

  int64_t total_bytes() const { return arena_bytes + parameter_bytes + state_bytes + input_bytes + scratch_bytes; }
};

/// Orders (as the graph does), places and prices everything. Offsets are multiples of kArenaAlignment. Results stay
/// alive to the end. An argument's storage is written only by its own update, after the last reader of its old value. A
/// result or an update that is the old value of an updated argument gets a copy appended to the graph, and every update
/// its own constant. With `streams` = 2 some launches go on a side stream, and on a target of several streams
/// collectives on one of their own (plan/streams.h).
Plan make_plan(Graph graph, const Platform& platform, int streams = 1);

inline constexpr int64_t kArenaAlignment = 64;  // a cache line, and the widest vector load

}  // namespace tokamak
