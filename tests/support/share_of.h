// The share of a tensor that a rank of a mesh has, element by element.
#pragma once

#include "graph/argument_spec.h"
#include "graph/host_tensor.h"
#include "graph/mesh.h"

namespace tokamak::test {

/// A rank's part of what is a sum of terms: parts that differ, and are 1 together.
inline double part_of_sum(const std::vector<Cut>& cuts, const Mesh& mesh, int64_t rank) {
  double part = 1;
  for (const Cut& cut : cuts)
    if (cut.term)
      part *= 2 * double(mesh.coordinates(rank)[mesh.find(cut.axis)] + 1) / double(cut.size * (cut.size + 1));
  return part;
}

/// What the rank at these coordinates has of a tensor.
inline HostTensor share_of(const HostTensor& whole, const std::vector<Cut>& cuts, const Mesh& mesh, int64_t rank) {
  HostTensor share({whole.type.dtype, part_shape(whole.shape(), cuts)});
  std::vector<int64_t> coordinates = mesh.coordinates(rank);
  double part = part_of_sum(cuts, mesh, rank);
  int64_t next = 0;
  for (int64_t i = 0; i < whole.size(); ++i) {
    int64_t rest = i;
    bool mine = true;
    for (size_t d = whole.shape().size(); d-- > 0;) {
      int64_t size = whole.shape()[d], index = rest % size;
      rest /= size;
      for (const Cut& cut : cuts) {
        if (cut.term || cut.dim != int64_t(d)) continue;
        int64_t block = size / cut.blocks;
        int64_t place = index % block / (block / cut.size);
        if (cut.mirrored && index / block % 2 == 1) place = cut.size - 1 - place;
        mine &= place == coordinates[mesh.find(cut.axis)];
      }
    }
    if (mine) share[next++] = part * whole[i];
  }
  return share;
}

}  // namespace tokamak::test
