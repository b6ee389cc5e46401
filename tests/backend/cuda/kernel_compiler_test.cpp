#include "backend/cuda/kernel_compiler.h"

#include "base/error.h"
#include "tests/support/address_space.h"

#include <gtest/gtest.h>

#include <iostream>

namespace tokamak::cuda {
namespace {

constexpr Architecture kAny{9, 0};

class KernelCompilerThreads : public testing::Test {
 protected:
  void SetUp() override {
    if (test::has_sanitizer()) GTEST_SKIP() << test::kSanitized;
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
};

TEST_F(KernelCompilerThreads, FewerThanAskedForWillDo) {
  auto work = [] {
    test::leave_address_space(rlim_t(200) << 20);
    { KernelCompiler compiler(0, kAny, "", 1000); }
    std::_Exit(0);
  };
  EXPECT_EXIT(work(), testing::ExitedWithCode(0), "");
}

TEST_F(KernelCompilerThreads, NoneIsAMessage) {
  auto work = [] {
    test::leave_address_space(1 << 20);
    try {
      KernelCompiler compiler(0, kAny, "", 4);
    } catch (const UserError& error) {
      std::cerr << error.what();
      std::_Exit(0);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(work(), testing::ExitedWithCode(0), "cannot start a thread");
}

}  // namespace
}  // namespace tokamak::cuda
