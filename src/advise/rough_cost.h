// Roughly what a layout takes, from one and two blocks of a micro-batch without data ranks and stages: mostly a little
// less than estimate() tells, so that few layouts need that. Tests: tests/advise/rough_cost_test.cpp.
#pragma once

#include "advise/training_request.h"

#include <optional>

namespace tokamak {

/// By which blocks a layout is known: they take no more for a token than its own do, which are over as many context
/// ranks and of as many sequences.
struct RoughBlocks {
  int64_t context_ranks = 1;
  bool are_of_many = true;  // sequences, which take least each

  bool are_those_of(const ParallelLayout& layout) const { return !are_of_many && context_ranks == layout.mesh.context; }
  /// More like its own: over more context ranks, and last of as many sequences.
  RoughBlocks closer_to(const ParallelLayout& layout) const;
};

class RoughCosts {
 public:
  /// Both outlive it.
  RoughCosts(const TrainingRequest& request, const Platform& platform) : request_(request), platform_(platform) {}

  /// Seconds of a step; none where its memory cannot be enough, whatever is computed again.
  std::optional<double> seconds(const ParallelLayout& layout, const RoughBlocks& blocks);
  std::optional<double> seconds(const ParallelLayout& layout) {
    return seconds(layout, {.context_ranks = layout.mesh.context, .are_of_many = false});
  }
  /// What will be asked of seconds().
  struct Asked {
    const ParallelLayout* layout = nullptr;
    RoughBlocks blocks = {};
  };
  /// Whether that takes no compiling.
  bool knows(const ParallelLayout& layout, const RoughBlocks& blocks) const;
  /// Compiles what that takes and the curve, side by side.
  void prepare(const std::vector<Asked>& asked);
  /// Bytes of parameters and states of the fullest GPU.
  double kept_bytes(const ParallelLayout& layout);
  /// That of one rank, which the library keeps.
  const RecomputeCurve& curve();

 private:
  // Of a block or of what is beside them, in a micro-batch.
  struct Part {
    double seconds = 0, activations = 0, update = 0;
    MemoryByKind kept;
  };
  struct Unit {
    Part block, ends;
  };

  Unit make_unit(ParallelLayout layout, int64_t kinds);
  struct Alone {
    ParallelLayout layout;
    double share = 1;  // of its tokens, what a rank of the layout has
  };
  Alone alone(const ParallelLayout& layout, const RoughBlocks& blocks) const;
  struct Share {
    const Unit& unit;
    double share = 1;
  };
  Share share_of(const ParallelLayout& layout, const RoughBlocks& blocks);
  double sent_seconds(const ParallelLayout& layout, const Unit& unit) const;

  const TrainingRequest& request_;
  const Platform& platform_;
  std::map<BlockKey, Unit> units_;
};

}  // namespace tokamak
