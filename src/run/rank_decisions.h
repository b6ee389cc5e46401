// What the ranks of a run decide as one. With one rank alone (`ranks` null) everything is decided by itself; else all
// ranks make these calls in the same order. Tests: tests/mesh/rank_decisions_test.cpp.
#pragma once

#include "exec/mesh_ranks.h"

#include <functional>
#include <string>

namespace tokamak {

class Backend;
struct RunConfig;
struct Target;
struct Tuning;

/// Returns when all ranks are here.
void meet(const MeshRanks* ranks);

/// What a rank says between two steps: that it is asked to stop, why its data cannot be read.
struct StepNews {
  bool stops = false;
  std::string failure;  // empty: it can
};
/// What any of them says, in one exchange; of failures the first in the order of ranks.
StepNews tell_all(const MeshRanks* ranks, const StepNews& mine);

/// Whether any rank says so; the least that one says; the first text that is not empty, in the order of ranks.
bool any_of(const MeshRanks* ranks, bool mine);
int64_t least_of(const MeshRanks* ranks, int64_t mine);
std::string first_of(const MeshRanks* ranks, const std::string& mine);

/// UserError on all ranks when their texts differ; it names those that differ from most, and in what.
void require_same(const MeshRanks* ranks, const std::string& name, const std::string& mine);

/// What the rank that leads has, on all.
std::string of_leader(const MeshRanks* ranks, const std::string& mine);
RunConfig of_leader(const MeshRanks* ranks, const RunConfig& mine);
Target of_leader(const MeshRanks* ranks, const Target& mine);

/// `work` of the rank that leads, which calls its argument from time to time, as the others wait no longer than a
/// communicator's timeout for it. They come back when it is done.
void lead_alone(const MeshRanks* ranks, const std::function<void(const std::function<void()>& not_yet)>& work);

/// Everything that the rank that leads has chosen by measurement (tune/tune.h), on the others. UserError where their
/// devices or libraries are of another kind. Its two sides: it gives when it has compiled, and the others wait for
/// that.
void give_choices(const MeshRanks* ranks, const Tuning& tuning, Backend& backend);
void await_choices(const MeshRanks* ranks, Tuning& tuning, Backend& backend);

}  // namespace tokamak
