// The parts of a model that a pipeline's stages have, each with its programs: what compile/pipe_compiler.h is made of.
// Tests: tests/compile/pipe_compiler_test.cpp.
#pragma once

#include "autodiff/optimizer.h"
#include "compile/compiled_step.h"
#include "passes/extract.h"
#include "passes/pass.h"
#include "plan/pipe_timeline.h"

#include <set>

namespace tokamak {

/// The residual stream that a chunk reads, and its gradient: states.
std::string residual_state(int64_t chunk);
std::string residual_gradient_state(int64_t chunk);

inline constexpr const char* kChunkLoss = "forward_loss";

struct CompiledChunk {
  std::optional<CompiledGraph> weights;  // once in a step, before all others
  std::vector<std::pair<PipeAction::Kind, CompiledGraph>> programs;
  std::optional<CompiledGraph> last;  // in place of the last of them where it runs for the last time in a step

  ChunkSeconds seconds() const;
};

struct BegunChunk {
  Graph graph;
  std::vector<PassReport> reports;
  std::optional<Graph> last = {};  // of the last micro-batch, where data ranks add gradients up beside it
  std::vector<PassReport> last_reports = {};
};

/// A chunk's place in the model: blocks first to last - 1 as number `number` of `chunks`.
struct ChunkPlace {
  int64_t number = 0, chunks = 1;
  int64_t first = 0, last = 0;

  bool is_last() const { return number + 1 == chunks; }
};

struct ChunkOptions {
  bool splits_backward = false;
  std::string suffix = {};  // of the programs' names
  // Of PassContext: by the budget, as told, by kinds, or so many nodes; of how many micro-batches.
  double recompute_gib = 0;
  int64_t recompute_kinds = -1;
  int64_t recompute_nodes = -1;
  int64_t micro_batches_held = 1;
};

class ChunkCompiler {
 public:
  /// `forward` is the model, and must outlive it, as `run`; blocks' ends are its results. `verifies`: of PassContext.
  ChunkCompiler(const ResolvedRun& run, const Platform& platform, const Graph& forward, bool verifies = true);

  /// A chunk of the model, with what a training step does to a micro-batch, of which the gradients of these parameters
  /// are those of the step: sums of micro-batches, which are left in states reduced.<name> ...
  Graph build(const ChunkPlace& place, const std::set<std::string>& reduced = {}) const;
  /// ... or the forward pass alone, of the same name as the model's graph; the last one leaves the loss in state
  /// kChunkLoss.
  Graph build_forward(const ChunkPlace& place) const;
  /// Up to where it is chosen what is computed again ...
  BegunChunk begin(Graph graph, const ChunkOptions& options, const PassObserver& observer) const;
  /// ... and the same of the step's last micro-batch: gradients that the chunk's last program gives are added up over
  /// ranks as soon as they are there, but for those of `shared` parameters, which other chunks have too.
  void begin_last(BegunChunk& begun, const ChunkPlace& place, const std::set<std::string>& shared,
                  const ChunkOptions& options, const PassObserver& observer) const;
  /// ... and from there on, divided into programs. The one for the last micro-batch is there if it takes less than the
  /// sums would take in the update, where there is a choice (mesh.reduce_gradients).
  CompiledChunk end(BegunChunk begun, int64_t number, const ChunkOptions& options, const PassObserver& observer) const;
  CompiledChunk compile(Graph graph, int64_t number, const ChunkOptions& options, const PassObserver& observer) const {
    return end(begin(std::move(graph), options, observer), number, options, observer);
  }

  const PassContext& context() const { return context_; }
  const Graph& model() const { return forward_; }

 private:
  PassContext context_of(const ChunkOptions& options) const;
  StandIn residual(std::string name, ValueType type) const;
  Graph cut_out(const ChunkPlace& place) const;
  Gradients append_backward(Graph& graph, int64_t number, bool is_last) const;
  std::vector<Graph> divide(const Graph& graph, int64_t number, const ChunkOptions& options) const;
  std::optional<CompiledGraph> end_last(const BegunChunk& begun, const std::vector<Graph>& programs, int64_t number,
                                        ChunkOptions options, const CompiledGraph& other,
                                        const PassObserver& observer) const;

  const ResolvedRun& run_;
  PassContext context_;
  const Graph& forward_;
};

}  // namespace tokamak
