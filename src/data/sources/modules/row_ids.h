// The ids of a row, put together by the readers of the module over Arrow's library.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/sources/modules/parquet_module.h"

namespace tokamak {

class RowIds {
 public:
  void clear() { ids_.clear(); }

  /// std::out_of_range for what is no id of any vocabulary, or one too many.
  template <typename T>
  void add(T id) {
    if (id < T(0) || uint64_t(id) > uint64_t(std::numeric_limits<int32_t>::max()))
      throw std::out_of_range("the id " + std::to_string(id));
    if (ids_.size() == kMostRowIds) throw std::out_of_range("more than " + std::to_string(kMostRowIds) + " ids");
    ids_.push_back(int32_t(id));
  }

  const std::vector<int32_t>& get() const { return ids_; }

 private:
  std::vector<int32_t> ids_;
};

}  // namespace tokamak
