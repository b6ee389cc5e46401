// Which candidate for a matmul is the fastest, by successive halving: each is run once, then fewer and fewer of those
// near the best are run more often, in turns, so that a change of the clock meets all alike. Pure: who calls brings the
// clock. Tests: tests/backend/cuda/matmul_search_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace tokamak::cuda {

/// What the search for one matmul may take.
struct SearchEffort {
  size_t candidates = 32;      // of the library's list
  double seconds = 20e-3;      // of runs; the first three that run are tried whatever that takes
  double loading_seconds = 0;  // beside these, of the host while it loads candidates' code
};

/// For a matmul that takes `share` (0 to 1) of a step's time.
SearchEffort effort_for(double share);

struct CandidateRun {
  double seconds = 0;          // infinite where the candidate cannot run
  double loading_seconds = 0;  // not in `seconds`
};

/// Runs candidates, named by their places in the list, one after the other without a pause.
using RunCandidates = std::function<std::vector<CandidateRun>(const std::vector<size_t>& turns)>;

struct SearchResult {
  size_t best = 0;
  double seconds = 0;
  double runner_up_seconds = 0;  // of the best of the others; 0: there is none
  double first_seconds = 0;      // of the first in the list that runs
  size_t tried = 0;              // candidates that ran
  double loading_seconds = 0;
};

/// Of candidates that are as fast as the best, the one with the least workspace, then the first in the list.
/// `workspaces` has a number of bytes for each candidate, in the library's order. Nothing when none runs.
std::optional<SearchResult> find_fastest(const std::vector<int64_t>& workspaces, const SearchEffort& effort,
                                         const RunCandidates& run);

}  // namespace tokamak::cuda
