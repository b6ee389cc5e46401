#include "exec/mesh_ranks.h"

#include "base/error.h"

namespace tokamak {

MeshRanks::MeshRanks(Mesh mesh, Communicator& world)
    : mesh_(std::move(mesh)), world_(world), coordinates_(mesh_.coordinates(world.rank())) {
  TOKAMAK_CHECK(mesh_.num_ranks() == world.size(), "a mesh of {} ranks in a world of {}", mesh_.num_ranks(),
                world.size());
  for (const MeshAxis& axis : mesh_.axes)
    axes_.push_back(axis.size > 1 ? world.split(axis.name, mesh_.group(rank(), axis.name)) : nullptr);
}

int64_t MeshRanks::coordinate(std::string_view axis) const {
  return mesh_.size(axis) > 1 ? coordinates_[mesh_.find(axis)] : 0;
}

Communicator& MeshRanks::along(const std::string& axis) const {
  const std::unique_ptr<Communicator>& found = axes_[mesh_.find(axis)];
  TOKAMAK_CHECK(found, "axis '{}' has one rank alone", axis);
  return *found;
}

std::optional<int32_t> MeshRanks::coordinate_of(const Argument& input) const {
  for (size_t a = 0; a < mesh_.axes.size(); ++a)
    if (input.name == coordinate_input(mesh_.axes[a].name)) return int32_t(coordinates_[a]);
  return {};
}

}  // namespace tokamak
