// Where the elements of a rank's share of a tensor lie in the whole. Tests: tests/graph/part_runs_test.cpp.
#pragma once

#include "graph/argument_spec.h"
#include "graph/mesh.h"

#include <cstddef>
#include <vector>

namespace tokamak {

/// Consecutive elements, in row-major order, of the whole and of the share.
struct PartRun {
  int64_t whole = 0;
  int64_t part = 0;
  int64_t count = 0;
  bool operator==(const PartRun&) const = default;
};

/// The share of the rank with these coordinates on the mesh, in the share's order, in runs as long as can be. `whole`
/// must be divided by the cuts (can_cut), whose axes must be the mesh's. A term has all of it.
std::vector<PartRun> part_runs(const Shape& whole, const std::vector<Cut>& cuts, const Mesh& mesh,
                               const std::vector<int64_t>& coordinates);

/// Those runs of a tensor of `stored` elements, of which each of `parts` equal parts has zeros behind its own, as runs
/// of the tensor of `elements` without these; the share has holes where they are.
std::vector<PartRun> without_padding(const std::vector<PartRun>& runs, int64_t stored, int64_t elements, int64_t parts);

/// Copies those elements, of `size` bytes each, out of the whole.
void copy_runs(const std::vector<PartRun>& runs, int64_t size, const std::byte* whole, std::byte* part);

}  // namespace tokamak
