// What a change of the cluster or of the layout would do to a plan. Tests: tests/advise/changes_test.cpp.
#pragma once

#include "advise/search.h"

namespace tokamak {

/// Something else than is planned for, and how much faster that would train: 0.1 is 10% more tokens/s. Where nothing
/// fits any more, is_possible is false.
struct Change {
  std::string what;
  bool is_possible = true;
  double gain = 0;
};

/// Twice and half of each rate of the cluster, with the fastest of the layouts that were found; twice and half of the
/// memory, with the layout that is best then; twice and half the GPUs, divided as one of the fastest layouts does, or
/// as fits. `found` are those of search_layouts: not empty.
std::vector<Change> cluster_changes(const TrainingRequest& request, const std::vector<Estimate>& found);

/// The layout's own neighbours: half and twice the micro-batch, one more and one less of ZeRO's stages, of a pipeline
/// the other schedules; and the best with half and twice the ranks of each other axis, which data gives or takes.
/// `found` are those of search_layouts, which some of the answers begin with.
std::vector<Change> layout_changes(const TrainingRequest& request, const Estimate& best,
                                   const std::vector<Estimate>& found);

/// "limited by ...": of what twice as much would help most, and by how much each would.
std::string limit_of(const std::vector<Change>& changes, const Estimate& best);

}  // namespace tokamak
