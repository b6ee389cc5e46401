// The optional folder of real data beside the source tree; tests that need it skip visibly where it is absent.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace tokamak {

/// Where the named file of the shared data would be (tests run in the source tree).
inline std::filesystem::path shared_data(const std::string& name) {
  return std::filesystem::path("../shared/data") / name;
}

}  // namespace tokamak

/// Skips the running test if the named file or folder of the shared data is not there.
#define TOKAMAK_NEED_SHARED_DATA(name) \
  if (!std::filesystem::exists(::tokamak::shared_data(name))) GTEST_SKIP() << "needs " << ::tokamak::shared_data(name)
