#include "graph/argument_spec.h"

#include <fmt/core.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <sstream>

namespace tokamak {
namespace {

// In the order of the enum.
constexpr std::string_view kNames[] = {"data",     "embedding",    "position",         "classifier",   "value_table",
                                       "column",   "row",          "matrix",           "column_bias",  "vector",
                                       "moment",   "gradient_sum", "reduced_gradient", "loss_scaling", "cache",
                                       "residual", "weights",      "activation",       "state"};

bool can_cut(const Shape& whole, const Cut& cut) {
  if (cut.dim < 0 || cut.dim >= int64_t(whole.size()) || cut.size < 1 || cut.blocks < 1) return false;
  return whole[size_t(cut.dim)] % (cut.blocks * cut.size) == 0 && (!cut.mirrored || cut.blocks % 2 == 0);
}

}  // namespace

std::string_view role_name(Role role) { return kNames[size_t(role)]; }

std::optional<Role> find_role(std::string_view name) {
  auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return {};
  return Role(found - std::begin(kNames));
}

bool is_parameter(Role role) { return role >= Role::kEmbedding && role <= Role::kVector; }

bool is_matrix(Role role) { return is_parameter(role) && role != Role::kVector && role != Role::kColumnBias; }

bool is_scratch(Role role) {
  bool is_gradient = role == Role::kGradientSum || role == Role::kReducedGradient;
  return is_gradient || (role >= Role::kCache && role <= Role::kActivation);
}

std::string print_cuts(const std::vector<Cut>& cuts) {
  std::string text;
  for (const Cut& cut : cuts) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", cut.axis, cut.size);
    text += cut.term ? "+" : fmt::format("@{}", cut.dim);
    if (cut.blocks != 1) text += fmt::format("x{}{}", cut.blocks, cut.mirrored ? "m" : "");
  }
  return text;
}

std::optional<std::vector<Cut>> parse_cuts(std::string_view text) {
  std::vector<Cut> cuts;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    auto colon = word.find(':');
    if (colon == 0 || colon == std::string::npos) return {};
    Cut cut{word.substr(0, colon)};
    const char* rest = word.c_str() + colon + 1;
    int read = std::sscanf(rest, "%" SCNd64 "@%" SCNd64 "x%" SCNd64, &cut.size, &cut.dim, &cut.blocks);
    cut.term = word.back() == '+';
    cut.mirrored = word.back() == 'm';
    if (read < (cut.term ? 1 : 2)) return {};
    cuts.push_back(std::move(cut));
  }
  if (print_cuts(cuts) != text) return {};
  return cuts;
}

bool lies_within(const Cut& inner, const Cut& outer) {
  return inner.blocks % (outer.blocks * outer.size * (inner.mirrored ? 2 : 1)) == 0;
}

bool can_cut(const Shape& whole, const std::vector<Cut>& cuts) {
  for (const Cut& a : cuts) {
    if (!a.term && !can_cut(whole, a)) return false;
    for (const Cut& b : cuts) {
      if (&a == &b) break;
      if (a.axis == b.axis) return false;
      if (!a.term && !b.term && a.dim == b.dim && !lies_within(a, b) && !lies_within(b, a)) return false;
    }
  }
  return true;
}

Shape part_shape(Shape whole, const std::vector<Cut>& cuts) {
  for (const Cut& cut : cuts)
    if (!cut.term) whole[size_t(cut.dim)] /= cut.size;
  return whole;
}

Shape whole_shape(Shape part, const std::vector<Cut>& cuts) {
  for (const Cut& cut : cuts)
    if (!cut.term) part[size_t(cut.dim)] *= cut.size;
  return part;
}

std::string print_padding(const Padding& padding) {
  return fmt::format("{}x{}{}", padding.dim, padding.parts, padding.computed ? "" : "-");
}

std::optional<Padding> parse_padding(std::string_view text) {
  Padding padding{.computed = !text.ends_with('-')};
  int read = std::sscanf(std::string(text).c_str(), "%" SCNd64 "x%" SCNd64, &padding.dim, &padding.parts);
  if (read != 2 || padding.dim < 0 || padding.parts < 1 || print_padding(padding) != text) return {};
  return padding;
}

std::optional<int64_t> dim_of_units(const ArgumentSpec& spec) {
  auto last = int64_t(spec.global.size()) - 1;
  switch (spec.role) {
    case Role::kColumn:
    case Role::kRow: return apart_dim(spec);
    case Role::kCache:
      if (last == 0) return std::nullopt;  // where its texts stand, a number for each
      [[fallthrough]];
    case Role::kColumnBias:
    case Role::kValueTable: return last;
    default: return std::nullopt;
  }
}

bool can_store(const Shape& stored, const Shape& global, const Padding& padding) {
  if (stored == global) return true;
  if (stored.size() != global.size() || padding.dim >= int64_t(stored.size())) return false;
  auto dim = size_t(padding.dim);
  for (size_t d = 0; d < stored.size(); ++d)
    if (d != dim && stored[d] != global[d]) return false;
  return stored[dim] >= global[dim] && stored[dim] % padding.parts == 0 && global[dim] % padding.parts == 0;
}

int64_t parts_padded(const Shape& stored, const Padding& padding) {
  int64_t parts = padding.parts;
  for (size_t d = 0; d < std::min(size_t(padding.dim), stored.size()); ++d) parts *= stored[d];
  return parts;
}

}  // namespace tokamak
