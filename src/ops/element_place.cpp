#include "ops/element_place.h"

#include "graph/builder.h"
#include "ops/movement.h"

#include <algorithm>
#include <tuple>

namespace tokamak {

std::vector<int64_t> place_attr(const Attrs& attrs) {
  return attrs.find("place") ? attrs.get_ints("place") : std::vector<int64_t>{};
}

ValueType rng_type(const Attrs& attrs) {
  return {DType::kI32, {2 + int64_t(place_attr(attrs).size() / kPlaceNumbers)}};
}

ValueId place_share(GraphBuilder& g, Attrs& attrs, ValueId rng, Shape share, std::span<const PlacedCut> cuts) {
  // Of two cuts of one dim the one within the other is undone first; what lies left of a dim does not matter to it.
  std::vector<PlacedCut> order(cuts.begin(), cuts.end());
  std::sort(order.begin(), order.end(), [](const PlacedCut& a, const PlacedCut& b) {
    return std::tuple(a.factor, -a.blocks, -a.axis.size) < std::tuple(b.factor, -b.blocks, -b.axis.size);
  });
  ValueIds numbers{rng};
  std::vector<int64_t> place;
  for (const PlacedCut& cut : order) {
    int64_t inner = 1;
    for (size_t d = size_t(cut.factor) + 1; d < share.size(); ++d) inner *= share[d];
    place.insert(place.end(), {cut.axis.size, cut.length * inner, cut.mirrored});
    numbers.push_back(reshape(g, cut.coordinate, {1}));
  }
  attrs.set("place", std::move(place));
  return concat(g, std::move(numbers), 0);
}

std::vector<int64_t> place_of_elements(std::vector<int64_t> place, int64_t matrix_size) {
  for (size_t k = 1; k < place.size(); k += kPlaceNumbers) place[k] *= matrix_size;
  return place;
}

}  // namespace tokamak
