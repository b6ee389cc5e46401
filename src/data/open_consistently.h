// Opening data that `prepare` may be replacing meanwhile. Tests: tests/data/open_consistently_test.cpp.
#pragma once

#include <string>

#include "base/error.h"

namespace tokamak {

struct DataConfig;

/// What tells the data sets in the folders made by `prepare` that the configuration names from any others there.
std::string data_generation(const DataConfig& config);

inline constexpr int kMostAttempts = 10;

/// What `open` gives of the data that the configuration names, all of it of one data set in each folder made by
/// `prepare`: where one was replaced meanwhile, it is called again. What is open stays as it is when that happens
/// later.
template <class Open>
auto open_consistently(const DataConfig& config, Open open) -> decltype(open()) {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    std::string before = data_generation(config);
    try {
      auto opened = open();
      if (data_generation(config) == before) return opened;
    } catch (const UserError&) {
      if (data_generation(config) == before) throw;
    }
  }
  user_error(
      "[data] expected data that stays as it is while it is opened, but it was replaced {} times; wait until "
      "`tokamak prepare` is done, then run again",
      kMostAttempts);
}

}  // namespace tokamak
