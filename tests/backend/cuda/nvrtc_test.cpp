// Device code compiles without a GPU, for every architecture that is supported.
#include "backend/cuda/nvrtc.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace tokamak::cuda {
namespace {

TEST(nvrtc, compiles_scalar_math_for_all_architectures) {
  std::string source =
      "#include \"backend/cuda/kernels/storage.cuh\"\n#include \"backend/cuda/kernels/philox.cuh\"\n"
      "#include \"ops/scalar_math.h\"\n"
      "extern \"C\" __global__ void f(float* x) { x[threadIdx.x] = tokamak::scalar::gelu(x[threadIdx.x]); }\n";
  for (Architecture a : {Architecture{8, 0}, {8, 9}, {9, 0}, {10, 0}, {12, 0}})
    EXPECT_GT(compile_device_code(source, a).size(), 1000u) << a.major << '.' << a.minor;
}

TEST(nvrtc, shows_the_log_of_what_does_not_compile) {
  try {
    compile_device_code("extern \"C\" __global__ void f() { missing(); }", {9, 0});
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("missing"), std::string::npos);
  }
}

}  // namespace
}  // namespace tokamak::cuda
