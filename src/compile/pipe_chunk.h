// The parts of a model that a pipeline's stages have, each with its programs: what compile/pipe_compiler.h is made of.
// Tests: tests/compile/pipe_compiler_test.cpp.
#pragma once

#include "compile/compiled_step.h"
#include "passes/extract.h"
#include "passes/pass.h"
#include "plan/pipe_timeline.h"

namespace tokamak {

/// The residual stream that a chunk reads, and its gradient: states.
std::string residual_state(int64_t chunk);
std::string residual_gradient_state(int64_t chunk);

inline constexpr const char* kChunkLoss = "forward_loss";

struct CompiledChunk {
  std::optional<CompiledGraph> weights;  // once in a step, before all others
  std::vector<std::pair<PipeAction::Kind, CompiledGraph>> programs;

  ChunkSeconds seconds() const;
};

struct BegunChunk {
  Graph graph;
  std::vector<PassReport> reports;
};

struct ChunkOptions {
  bool splits_backward = false;
  std::string suffix = {};  // of the programs' names
  // Of PassContext: by the budget, as told, or by kinds; of how many micro-batches.
  double recompute_gib = 0;
  int64_t recompute_kinds = -1;
  int64_t micro_batches_held = 1;
};

class ChunkCompiler {
 public:
  /// `forward` is the model, and must outlive it, as `run`; blocks' ends are its results. `verifies`: of PassContext.
  ChunkCompiler(const ResolvedRun& run, const Platform& platform, const Graph& forward, bool verifies = true);

  /// Blocks first to last - 1 of the model as chunk `number` of `chunks`, with what a training step does to a
  /// micro-batch ...
  Graph build(int64_t number, int64_t chunks, int64_t first, int64_t last) const;
  /// ... or the forward pass alone, of the same name as the model's graph; the last one leaves the loss in state
  /// kChunkLoss.
  Graph build_forward(int64_t number, int64_t chunks, int64_t first, int64_t last) const;
  /// Up to where it is chosen what is computed again ...
  BegunChunk begin(Graph graph, const ChunkOptions& options, const PassObserver& observer) const;
  /// ... and from there on, divided into programs.
  CompiledChunk end(BegunChunk begun, int64_t number, const ChunkOptions& options, const PassObserver& observer) const;
  CompiledChunk compile(Graph graph, int64_t number, const ChunkOptions& options, const PassObserver& observer) const {
    return end(begin(std::move(graph), options, observer), number, options, observer);
  }

  const PassContext& context() const { return context_; }
  const Graph& model() const { return forward_; }

 private:
  PassContext context_of(const ChunkOptions& options) const;
  StandIn residual(std::string name, ValueType type) const;
  Graph cut_out(int64_t number, int64_t chunks, int64_t first, int64_t last) const;
  void append_backward(Graph& graph, int64_t number, bool is_last) const;

  const ResolvedRun& run_;
  PassContext context_;
  const Graph& forward_;
};

}  // namespace tokamak
