// The ranks of a run as a grid with named axes, as plain data: docs/parallel.md. Tests: tests/graph/mesh_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis&) const = default;
};

/// Axes from the slowest to the fastest: neighbours along the last one are ranks r and r + 1. No axes: one rank.
struct Mesh {
  std::vector<MeshAxis> axes;

  int64_t num_ranks() const;
  /// Of the axis of that name; 1 when there is none.
  int64_t size(std::string_view axis) const;
  /// Index into axes; InternalError when there is none of that name.
  size_t find(std::string_view axis) const;
  /// A rank's coordinate on each axis, and the rank of given ones.
  std::vector<int64_t> coordinates(int64_t rank) const;
  int64_t rank(const std::vector<int64_t>& coordinates) const;
  /// The ranks that differ from this one in their coordinate on the axis alone, itself included, in its order.
  std::vector<int64_t> group(int64_t rank, std::string_view axis) const;

  bool operator==(const Mesh&) const = default;
};

/// Its axes of more than one rank: "data 2 x tensor 4"; "one rank" when there is none.
std::string to_string(const Mesh& mesh);

/// Name of the input that gives a rank's coordinate on the axis, i32[], where a graph has one.
std::string coordinate_input(std::string_view axis);

}  // namespace tokamak
