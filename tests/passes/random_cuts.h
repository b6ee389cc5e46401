// Random meshes, and random cuts of a graph's arguments over them.
#pragma once

#include "passes/shard.h"

#include <random>

namespace tokamak::test {

inline int below(std::mt19937& random, int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); }

/// One to three axes, up to 12 ranks.
inline Mesh random_mesh(std::mt19937& random) {
  static constexpr int64_t kSizes[] = {2, 3, 2, 4, 2, 5, 6, 7, 12};
  Mesh mesh;
  for (const char* name : {"data", "context", "tensor"})
    if (int64_t size = kSizes[below(random, std::size(kSizes))]; below(random, 2) && mesh.num_ranks() * size <= 12)
      mesh.axes.push_back({name, size});
  if (mesh.axes.empty()) mesh.axes.push_back({"tensor", 2});
  return mesh;
}

/// For every argument and axis, often, some dim and number of blocks that can be cut; now and then terms.
inline ArgumentCuts random_cuts(const Graph& graph, const Mesh& mesh, std::mt19937& random) {
  ArgumentCuts cuts;
  for (const Argument& argument : graph.arguments()) {
    const Shape& shape = graph.shape(argument.value);
    std::vector<Cut>& of_argument = cuts[argument.value];
    for (const MeshAxis& axis : mesh.axes) {
      if (graph.type(argument.value).dtype == DType::kF32 && below(random, 8) == 0) {
        of_argument.push_back({.axis = axis.name, .size = axis.size, .term = true});
        continue;
      }
      for (int tries = 0; tries < 3 && !shape.empty() && below(random, 3); ++tries) {
        static constexpr int64_t kBlocks[] = {1, 1, 2, 3, 4};
        Cut cut{axis.name, axis.size, below(random, int(shape.size())), kBlocks[below(random, 5)]};
        cut.mirrored = cut.blocks % 2 == 0 && below(random, 2);
        of_argument.push_back(std::move(cut));
        if (can_cut(shape, of_argument)) break;
        of_argument.pop_back();
      }
    }
  }
  return cuts;
}

}  // namespace tokamak::test
