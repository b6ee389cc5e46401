#include "passes/shares.h"

#include "base/error.h"

#include <algorithm>

namespace tokamak {

const std::vector<Placed>& Shares::of(ValueId value) const {
  TOKAMAK_CHECK(has(value), "[shard] %{} is read before it is made", value);
  return shares_[size_t(value)];
}

ValueId Shares::find(ValueId value, const Placements& at) const {
  if (!has(value)) return kNoValue;
  for (const Placed& share : shares_[size_t(value)])
    if (share.at == at) return share.value;
  return kNoValue;
}

ValueId Shares::get(ValueId value, const Placements& at, int64_t bytes) {
  if (ValueId known = find(value, at); known != kNoValue) return known;
  auto cost = [&](const Placed& share) {
    double sum = 0;
    for (size_t axis = 0; axis < at.size(); ++axis)
      sum += move_cost(share.at[axis], at[axis], double(bytes), mesh_.axes[axis].size);
    return sum;
  };
  const std::vector<Placed>& known = of(value);
  Placed from = *std::min_element(known.begin(), known.end(),
                                  [&](const Placed& a, const Placed& b) { return cost(a) < cost(b); });
  return move(
      g_, mesh_, std::move(from), at, [&](size_t axis) { return coordinate(axis); },
      [&](const Placed& made) { add(value, made); });
}

ValueId Shares::coordinate(size_t axis) {
  std::string name = coordinate_input(mesh_.axes[axis].name);
  ValueId known = g_.graph().find_argument(name);
  return known != kNoValue ? known : g_.input(std::move(name), {DType::kI32, {}});
}

}  // namespace tokamak
