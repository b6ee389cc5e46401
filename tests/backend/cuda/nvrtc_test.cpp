// Device code compiles without a GPU, for every architecture that is supported.
#include "backend/cuda/nvrtc.h"

#include "base/error.h"
#include "tests/backend/cuda/architectures.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tokamak::cuda {
namespace {

TEST(nvrtc, compiles_scalar_math_for_all_architectures) {
  std::string source =
      "#include \"backend/cuda/kernels/storage.cuh\"\n#include \"backend/cuda/kernels/dropout_random.cuh\"\n"
      "#include \"ops/scalar_math.h\"\n"
      "extern \"C\" __global__ void f(float* x) { tokamak::begin_kernel(); x[threadIdx.x] = "
      "tokamak::scalar::gelu(x[threadIdx.x]); }\n";
  test::expect_compiles(source, {"f"}, test::all_architectures());
}

// What NVRTC of CUDA 12.4, 12.8 and 13.0 knows, of 8.0 and newer.
const std::vector<int> kKnown124 = {80, 86, 87, 89, 90}, kKnown128 = {80, 86, 87, 89, 90, 100, 101, 120},
                       kKnown130 = {80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

void expect_form(Architecture device, const std::vector<int>& known, const std::string& architecture) {
  CodeForm form = code_form(device, known);
  EXPECT_EQ(form.architecture, architecture);
  EXPECT_EQ(form.machine_code, architecture.starts_with("sm_"));
}

TEST(nvrtc, makes_machine_code_for_devices_that_it_knows) {
  for (const std::vector<int>& known : {kKnown124, kKnown128, kKnown130}) {
    expect_form({8, 0}, known, "sm_80");
    expect_form({8, 6}, known, "sm_86");
    expect_form({8, 9}, known, "sm_89");
    expect_form({9, 0}, known, "sm_90a");
  }
  expect_form({10, 0}, kKnown130, "sm_100");
  expect_form({12, 0}, kKnown128, "sm_120");
}

TEST(nvrtc, makes_ptx_for_devices_that_are_newer) {
  expect_form({10, 0}, kKnown124, "compute_90");
  expect_form({12, 0}, kKnown124, "compute_90");
  expect_form({12, 1}, kKnown128, "compute_120");
}

// PTX of a newer architecture than the device's own would not load.
TEST(nvrtc, makes_ptx_that_the_device_can_run) {
  expect_form({8, 8}, kKnown124, "compute_87");
  expect_form({10, 3}, kKnown128, "compute_101");
  EXPECT_THROW(code_form({7, 5}, kKnown124), InternalError);
}

TEST(nvrtc, names_code_by_all_that_decides_it) {
  std::string name = device_code_name("text", {9, 0});
  EXPECT_EQ(name.size(), 64u);
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef"), name.npos);
  EXPECT_EQ(device_code_name("text", {9, 0}), name);
  EXPECT_NE(device_code_name("test", {9, 0}), name);
  EXPECT_NE(device_code_name("text", {8, 0}), name);
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
