// The ways that a collective can go over the links of many nodes, of which it takes the fastest, as NCCL does: around a
// ring or, for a sum, over a tree, in large messages or in small ones that wait less, and where a cluster has them by
// switches that add up, and gathers by parallel trees. Each is a link of its own in
// Target::axis_links, named by its axis and its way; an axis without them has one for all.
#pragma once

#include <string_view>

namespace tokamak {

/// Behind the axis' name. A sum goes around its ring twice.
inline constexpr std::string_view kRingLowWay = " by ring, small messages", kSumWay = " by ring, twice",
                                  kSumLowWay = " by ring, twice, small messages", kTreeWay = " by tree",
                                  kTreeLowWay = " by tree, small messages", kSwitchWay = " by switches",
                                  kParallelTreesWay = " by parallel trees";

/// Behind the axis' name, too, but no way: in place of a bandwidth, the share of the device's work that a collective
/// over the axis takes from what runs beside it, where that is not Target::link_units.
inline constexpr std::string_view kUnitsTaken = " units";

}  // namespace tokamak
