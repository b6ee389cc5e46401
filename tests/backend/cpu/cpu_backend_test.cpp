#include "backend/cpu/cpu_backend.h"

#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

namespace tokamak::cpu {
namespace {

TEST(CpuBackend, TellsHowMuchMemoryIsNotThere) {
  auto backend = make_backend();
  expect_user_error([&] { backend->allocate(int64_t(1) << 60); },
                    {"[memory] expected 1099511627776.0 MiB", "--train.batch (--rows of `generate`)"});
}

}  // namespace
}  // namespace tokamak::cpu
