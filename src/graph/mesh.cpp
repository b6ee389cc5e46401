#include "graph/mesh.h"

#include "base/error.h"

namespace tokamak {

int64_t Mesh::num_ranks() const {
  int64_t n = 1;
  for (const MeshAxis& axis : axes) n *= axis.size;
  return n;
}

int64_t Mesh::size(std::string_view axis) const {
  for (const MeshAxis& known : axes)
    if (known.name == axis) return known.size;
  return 1;
}

size_t Mesh::find(std::string_view axis) const {
  for (size_t a = 0; a < axes.size(); ++a)
    if (axes[a].name == axis) return a;
  TOKAMAK_CHECK(false, "the mesh has no axis '{}'", axis);
}

std::vector<int64_t> Mesh::coordinates(int64_t rank) const {
  std::vector<int64_t> coordinates(axes.size());
  for (size_t a = axes.size(); a-- > 0;) {
    coordinates[a] = rank % axes[a].size;
    rank /= axes[a].size;
  }
  return coordinates;
}

int64_t Mesh::rank(const std::vector<int64_t>& coordinates) const {
  int64_t rank = 0;
  for (size_t a = 0; a < axes.size(); ++a) rank = rank * axes[a].size + coordinates[a];
  return rank;
}

std::vector<int64_t> Mesh::group(int64_t rank, std::string_view axis) const {
  size_t a = find(axis);
  std::vector<int64_t> at = coordinates(rank), ranks;
  for (at[a] = 0; at[a] < axes[a].size; ++at[a]) ranks.push_back(this->rank(at));
  return ranks;
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes)
    if (axis.size > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis.name, axis.size);
  return text.empty() ? "one rank" : text;
}

std::string coordinate_input(std::string_view axis) { return "rank." + std::string(axis); }

}  // namespace tokamak
