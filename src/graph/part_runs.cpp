#include "graph/part_runs.h"

#include "base/error.h"

#include <algorithm>
#include <cstring>

namespace tokamak {
namespace {

struct Range {
  int64_t begin, count;
};

// What the cuts of one dim leave to the rank of its `size` indices.
std::vector<Range> owned_ranges(int64_t size, const std::vector<Cut>& cuts, const Mesh& mesh,
                                const std::vector<int64_t>& coordinates) {
  int64_t step = size;  // of the smallest parts: no part begins or ends within one
  for (const Cut& cut : cuts) step = std::min(step, size / (cut.blocks * cut.size));
  std::vector<Range> ranges;
  for (int64_t begin = 0; begin < size; begin += step) {
    bool owned = std::all_of(cuts.begin(), cuts.end(), [&](const Cut& cut) {
      int64_t part = begin / (size / (cut.blocks * cut.size)), index = part % cut.size;
      bool backwards = cut.mirrored && part / cut.size % 2 == 1;
      return (backwards ? cut.size - 1 - index : index) == coordinates[mesh.find(cut.axis)];
    });
    if (!owned) continue;
    if (!ranges.empty() && ranges.back().begin + ranges.back().count == begin)
      ranges.back().count += step;
    else
      ranges.push_back({begin, step});
  }
  return ranges;
}

}  // namespace

std::vector<PartRun> part_runs(const Shape& whole, const std::vector<Cut>& cuts, const Mesh& mesh,
                               const std::vector<int64_t>& coordinates) {
  TOKAMAK_CHECK(can_cut(whole, cuts), "{} cannot be cut by \"{}\"", to_string(whole), print_cuts(cuts));
  std::vector<PartRun> runs = {{0, 0, 1}};
  for (size_t dim = 0; dim < whole.size(); ++dim) {
    std::vector<Cut> of_dim;
    for (const Cut& cut : cuts)
      if (!cut.term && cut.dim == int64_t(dim)) of_dim.push_back(cut);
    std::vector<Range> ranges = owned_ranges(whole[dim], of_dim, mesh, coordinates);
    bool all = ranges.size() == 1 && ranges[0].count == whole[dim];
    std::vector<PartRun> finer;
    for (const PartRun& run : runs)
      if (all) {
        finer.push_back({run.whole * whole[dim], 0, run.count * whole[dim]});
      } else {
        for (int64_t index = run.whole; index < run.whole + run.count; ++index)
          for (const Range& range : ranges) finer.push_back({index * whole[dim] + range.begin, 0, range.count});
      }
    runs = std::move(finer);
  }
  int64_t part = 0;
  for (PartRun& run : runs) {
    run.part = part;
    part += run.count;
  }
  return runs;
}

std::vector<PartRun> without_padding(const std::vector<PartRun>& runs, int64_t stored, int64_t elements,
                                     int64_t parts) {
  if (stored == elements) return runs;
  TOKAMAK_CHECK(stored % parts == 0 && elements % parts == 0, "{} of {} elements in {} parts", elements, stored, parts);
  int64_t with = stored / parts, own = elements / parts;
  std::vector<PartRun> left;
  for (const PartRun& run : runs)
    for (int64_t done = 0; done < run.count;) {
      int64_t part = (run.whole + done) / with, at = (run.whole + done) % with;
      int64_t count = std::min(run.count - done, with - at), kept = std::clamp<int64_t>(own - at, 0, count);
      if (kept > 0) left.push_back({part * own + at, run.part + done, kept});
      done += count;
    }
  return left;
}

void copy_runs(const std::vector<PartRun>& runs, int64_t size, const std::byte* whole, std::byte* part) {
  for (const PartRun& run : runs)
    std::memcpy(part + run.part * size, whole + run.whole * size, size_t(run.count * size));
}

}  // namespace tokamak
