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

// Else each of them plans with all of it.
TEST(CpuBackend, ThoseThatShareAMemoryHaveTheirPartOfIt) {
  int64_t alone = make_backend()->free_bytes();
  if (alone == 0) GTEST_SKIP() << "the system does not tell";
  EXPECT_LT(make_backend(64)->free_bytes(), alone / 8) << "others may take or free some meanwhile";
}

}  // namespace
}  // namespace tokamak::cpu
