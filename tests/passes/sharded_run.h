// Runs a graph's share on all ranks of a mesh with the lockstep interpreter, and compares with the graph as it was.
#pragma once

#include "passes/shard.h"
#include "tests/support/random_tensors.h"
#include "tests/support/share_of.h"

#include <fmt/core.h>

namespace tokamak::test {

/// Arguments of each rank, given those of the graph as it was.
inline std::vector<std::vector<HostTensor>> arguments_of_ranks(const Graph& sharded, const Mesh& mesh,
                                                               const std::vector<HostTensor>& whole) {
  std::vector<std::vector<HostTensor>> arguments(size_t(mesh.num_ranks()));
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank)
    for (size_t i = 0; i < sharded.arguments().size(); ++i) {
      const Argument& argument = sharded.arguments()[i];
      if (i < whole.size()) {
        arguments[size_t(rank)].push_back(share_of(whole[i], argument.spec.cuts, mesh, rank));
        continue;
      }
      std::string axis = argument.name.substr(argument.name.find('.') + 1);
      EXPECT_EQ(argument.name, coordinate_input(axis));
      auto coordinate = double(mesh.coordinates(rank)[mesh.find(axis)]);
      arguments[size_t(rank)].push_back(HostTensor({DType::kI32, {}}, {coordinate}));
    }
  return arguments;
}

/// What the update of an argument leaves to a rank; of terms, what all ranks of the axis have together.
inline HostTensor updated(const std::vector<Interpretation>& ranks, size_t update, const std::vector<Cut>& cuts,
                          const Mesh& mesh, int64_t rank) {
  HostTensor sum(ranks[size_t(rank)].updates[update].type);
  for (int64_t other = 0; other < mesh.num_ranks(); ++other) {
    std::vector<int64_t> mine = mesh.coordinates(rank), theirs = mesh.coordinates(other);
    for (const Cut& cut : cuts)
      if (cut.term) mine[mesh.find(cut.axis)] = theirs[mesh.find(cut.axis)];
    if (mine != theirs) continue;
    for (int64_t i = 0; i < sum.size(); ++i) sum[i] += ranks[size_t(other)].updates[update][i];
  }
  return sum;
}

/// Where the ranks of the sharded graph get something else than their share of what the graph gives; or nothing.
inline std::string find_sharding_fault(const Graph& graph, const Graph& sharded, const Mesh& mesh,
                                       const std::vector<HostTensor>& arguments, double tolerance) {
  Interpretation expected = interpret(graph, arguments);
  std::vector<Interpretation> ranks = interpret_ranks(sharded, mesh, arguments_of_ranks(sharded, mesh, arguments));
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
    const Interpretation& got = ranks[size_t(rank)];
    for (size_t i = 0; i < expected.results.size(); ++i)
      if (double d = difference(got.results[i], expected.results[i]); !(d <= tolerance))
        return fmt::format("result {} differs by {} on rank {}", graph.results()[i].name, d, rank);
    for (size_t i = 0; i < expected.updates.size(); ++i) {
      const Argument& target = *sharded.argument_of(sharded.updates()[i].target);
      std::vector<Cut> cuts = target.spec.cuts;
      HostTensor sum = updated(ranks, i, cuts, mesh, rank);
      std::erase_if(cuts, [](const Cut& cut) { return cut.term; });
      if (double d = difference(sum, share_of(expected.updates[i], cuts, mesh, rank)); !(d <= tolerance))
        return fmt::format("update of {} differs by {} on rank {}", target.name, d, rank);
    }
  }
  return {};
}

/// Where two graphs give something else, to the bit, on the ranks of the mesh; or nothing.
inline std::string find_difference(const Graph& graph, const Graph& other, const Mesh& mesh,
                                   const std::vector<std::vector<HostTensor>>& ranks) {
  std::vector<Interpretation> expected = interpret_ranks(graph, mesh, ranks), got = interpret_ranks(other, mesh, ranks);
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    for (size_t i = 0; i < expected[rank].results.size(); ++i)
      if (got[rank].results[i].data != expected[rank].results[i].data)
        return fmt::format("result {} differs on rank {}", i, rank);
    for (size_t i = 0; i < expected[rank].updates.size(); ++i)
      if (got[rank].updates[i].data != expected[rank].updates[i].data)
        return fmt::format("update {} differs on rank {}", i, rank);
  }
  return {};
}

}  // namespace tokamak::test
