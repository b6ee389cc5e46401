#include "ops/dynamic_map.h"

#include <algorithm>
#include <cmath>

namespace tokamak {

DynamicMap::DynamicMap(bool is_signed) {
  constexpr int kDecades = 7;
  std::vector<float> numbers{0, 1};
  for (int decade = 0; decade < kDecades; ++decade) {
    int count = (is_signed ? 1 : 2) << decade;  // the middles of as many equal parts of 0.1 to 1
    for (int i = 0; i < count; ++i) {
      auto number = float((0.1 + 0.9 * (i + 0.5) / count) * std::pow(10, decade + 1 - kDecades));
      numbers.push_back(number);
      if (is_signed) numbers.push_back(-number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  std::copy(numbers.begin(), numbers.end(), values_.begin());
  for (size_t i = 0; i + 1 < values_.size(); ++i) midpoints_[i] = float((double(values_[i]) + values_[i + 1]) / 2);
  zero_ = int(std::find(values_.begin(), values_.end(), 0.0f) - values_.begin());
  above_.assign(midpoints_.begin() + zero_, midpoints_.end());
  above_.push_back(std::numeric_limits<float>::infinity());
  size_t place = 0;
  for (uint32_t i = 0; i < first_.size(); ++i) {
    float least = i == 0 ? 0 : std::bit_cast<float>((kLeast + i) << kShift);
    while (least > above_[place]) ++place;
    first_[i] = uint8_t(place);
  }
}

}  // namespace tokamak
