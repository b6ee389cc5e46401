// Roughly what a layout takes, from one and two blocks of a micro-batch without data ranks and stages: mostly a little
// less than estimate() tells, so that few layouts need that. Tests: tests/advise/rough_cost_test.cpp.
#pragma once

#include "advise/training_request.h"

#include <optional>

namespace tokamak {

class RoughCosts {
 public:
  /// Both outlive it.
  RoughCosts(const TrainingRequest& request, const Platform& platform) : request_(request), platform_(platform) {}

  /// Seconds of a step; none where its memory cannot be enough, whatever is computed again. By blocks over as many
  /// context ranks as are said, or fewer, which take no more for a token; 0: of many sequences on one.
  std::optional<double> seconds(const ParallelLayout& layout, int64_t context_ranks);
  /// What will be asked of seconds().
  struct Asked {
    const ParallelLayout* layout = nullptr;
    int64_t context_ranks = 0;
  };
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
  Alone alone(const ParallelLayout& layout, int64_t context_ranks) const;
  struct Share {
    const Unit& unit;
    double share = 1;
  };
  Share share_of(const ParallelLayout& layout, int64_t context_ranks);
  double sent_seconds(const ParallelLayout& layout, const Unit& unit) const;

  const TrainingRequest& request_;
  const Platform& platform_;
  std::map<BlockKey, Unit> units_;
};

}  // namespace tokamak
