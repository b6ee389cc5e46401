// Random numbers go by an element's place in the whole tensor, whatever part of it a rank has. A node that draws them
// for a part has the attribute `place`: for one cut after the other that is to be undone, how many pieces there are,
// how long each is, and 1 where every second one is counted from the end (a mirrored cut: graph/argument_spec.h), else
// 0; and its rng has behind (seed, step) the rank's coordinate for each. Tests: tests/ops/element_place_test.cpp.
#pragma once

#include "base/error.h"
#include "graph/graph.h"
#include "graph/sharding_rule.h"

#include <array>

namespace tokamak {

class GraphBuilder;

/// Numbers of the attribute for each cut.
inline constexpr size_t kPlaceNumbers = 3;

/// Of a node's attributes; empty where it has the whole.
std::vector<int64_t> place_attr(const Attrs& attrs);

/// Type of rng for a node with these attributes: i32[2] and more.
ValueType rng_type(const Attrs& attrs);

/// Sets `place` for a share of this shape, whose dims are the factors of the cuts, and returns the rng for it. (A copy
/// of the shape: graph and attributes change.)
ValueId place_share(GraphBuilder& g, Attrs& attrs, ValueId rng, Shape share, std::span<const PlacedCut> cuts);

/// `place` of the elements of matrices, given that of the matrices.
std::vector<int64_t> place_of_elements(std::vector<int64_t> place, int64_t matrix_size);

/// From an element of the part to that of the whole.
class ElementPlace {
 public:
  ElementPlace() = default;
  /// `rng` gives the node's numbers, (seed, step, coordinates).
  template <typename Rng>
  ElementPlace(const Attrs& attrs, const Rng& rng) {
    const Attr* place = attrs.find("place");
    if (!place) return;
    const std::vector<int64_t>& numbers = attrs.get_ints("place");
    count_ = numbers.size() / kPlaceNumbers;
    TOKAMAK_CHECK(count_ <= cuts_.size(), "{} cuts of one tensor", count_);
    for (size_t k = 0; k < count_; ++k) {
      const int64_t* cut = &numbers[k * kPlaceNumbers];
      cuts_[k] = {cut[0], cut[1], cut[2] != 0, int64_t(rng[2 + k])};
    }
  }

  int64_t operator()(int64_t i) const {
    for (size_t k = 0; k < count_; ++k) {
      const UndoneCut& cut = cuts_[k];
      int64_t block = i / cut.length;
      int64_t piece = cut.mirrored && block % 2 == 1 ? cut.pieces - 1 - cut.coordinate : cut.coordinate;
      i = (block * cut.pieces + piece) * cut.length + i % cut.length;
    }
    return i;
  }
  /// Whether runs of 8, from a multiple of 8 on, stay such runs.
  bool keeps_runs() const {
    for (size_t k = 0; k < count_; ++k)
      if (cuts_[k].length % 8 != 0) return false;
    return true;
  }

 private:
  struct UndoneCut {
    int64_t pieces = 1, length = 1;
    bool mirrored = false;
    int64_t coordinate = 0;
  };
  std::array<UndoneCut, 4> cuts_;  // a mesh has no more axes
  size_t count_ = 0;
};

}  // namespace tokamak
