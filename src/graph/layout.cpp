#include "graph/layout.h"

#include <algorithm>
#include <iterator>

namespace tokamak {
namespace {

// In the order of the enum.
constexpr std::string_view kNames[] = {"data",         "embedding", "position", "classifier", "column",
                                       "row",          "matrix",    "vector",   "moment",     "gradient_sum",
                                       "loss_scaling", "cache",     "state"};

}  // namespace

std::string_view role_name(Role role) { return kNames[size_t(role)]; }

std::optional<Role> find_role(std::string_view name) {
  auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return {};
  return Role(found - std::begin(kNames));
}

bool is_parameter(Role role) { return role >= Role::kEmbedding && role <= Role::kVector; }

bool is_matrix(Role role) { return is_parameter(role) && role != Role::kVector; }

bool is_scratch(Role role) { return role == Role::kGradientSum || role == Role::kCache; }

bool can_store(const Shape& stored, const Shape& global) {
  if (stored.size() != global.size()) return false;
  return stored.empty() || (stored[0] >= global[0] && std::equal(stored.begin() + 1, stored.end(), global.begin() + 1));
}

}  // namespace tokamak
