// The ranks of a run as one of them sees them: its place on the mesh, and a communicator for each axis.
// Tests: tests/exec/collective_kernel_test.cpp.
#pragma once

#include "backend/communicator.h"
#include "graph/graph.h"
#include "graph/mesh.h"

#include <optional>

namespace tokamak {

class MeshRanks {
 public:
  /// `world`, whose ranks are those of the mesh, must outlive it. All ranks call it at the same time.
  MeshRanks(Mesh mesh, Communicator& world);

  const Mesh& mesh() const { return mesh_; }
  int64_t rank() const { return world_.rank(); }
  const std::vector<int64_t>& coordinates() const { return coordinates_; }
  /// On the axis of that name; 0 when the mesh has none.
  int64_t coordinate(std::string_view axis) const;
  Communicator& world() const { return world_; }
  /// Of the axis of that name; InternalError when it has one rank alone.
  Communicator& along(const std::string& axis) const;
  /// Where this rank stands on the axis that the input tells of; nothing when it is another kind of input.
  std::optional<int32_t> coordinate_of(const Argument& input) const;

 private:
  Mesh mesh_;
  Communicator& world_;
  std::vector<int64_t> coordinates_;
  std::vector<std::unique_ptr<Communicator>> axes_;  // null: of one rank
};

/// Where this rank notes what it does; null: nowhere.
inline RankProgress* progress_of(const MeshRanks* ranks) { return ranks ? ranks->world().progress() : nullptr; }

/// Whether this is the rank that writes files, speaks, and decides what only one can; null: one rank.
inline bool leads(const MeshRanks* ranks) { return !ranks || ranks->rank() == 0; }

}  // namespace tokamak
