// Mistakes in --device, through the program itself.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

class Device : public testing::Test {
 protected:
  ProgramResult explain(const std::string& device) {
    return run_program(folder_.path(), test::tiny_arguments("explain", {"--model.vocab=301", "--device=" + device}));
  }

  TemporaryFolder folder_;
};

TEST_F(Device, UnknownName) {
  for (const char* name : {"gpu", "CUDA", "cuda:", "cuda:-1", "cuda:0x1", "cuda:1 ", "cuda0"})
    expect_refused(explain(name),
                   {"[device] expected auto, cpu, cuda or cuda:<number>", "got '" + std::string(name) + "'"});
}

// What is missing depends on the machine: the GPU of that number, any GPU or its driver, or the backend in the program.
TEST_F(Device, ThereIsNoSuchGpu) {
  ProgramResult result = explain("cuda:999");
  expect_refused(result, {"[cuda] expected"});
  bool says_what_to_do = false;
  for (const char* advice : {"nvidia-smi lists them", "use --device=cpu"})
    says_what_to_do = says_what_to_do || result.err.find(advice) != std::string::npos;
  EXPECT_TRUE(says_what_to_do) << result.err;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_F(Device, VersionNamesTheLibrariesOrWhatIsMissing) {
  ProgramResult result = run_program(folder_.path(), {"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out.rfind("tokamak ", 0), 0u) << result.out;
  EXPECT_TRUE(has(result.out, "\nCUDA: built with toolkit ") || has(result.out, "\nCUDA: not built in; install"))
      << result.out;
}

// Libraries that do not open stand before those that may be there.
TEST_F(Device, WorksOnTheCpuWhereTheLibrariesForGpusDoNotOpen) {
  for (const char* name :
       {"libcudnn.so.9", "libcublasLt.so.12", "libcublasLt.so.13", "libnvrtc.so.12", "libnvrtc.so.13", "libcuda.so.1"})
    std::ofstream(folder_ / name).flush();
  ::setenv("LD_LIBRARY_PATH", folder_.path().c_str(), 1);
  ProgramResult version = run_program(folder_.path(), {"--version"}), explained = explain("cpu"), gpu = explain("cuda");
  ::unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(version.status, 0) << version.err;
  EXPECT_TRUE(has(version.out, "no cuDNN (") || has(version.out, "CUDA: not built in")) << version.out;
  EXPECT_EQ(explained.status, 0) << explained.err;
  expect_refused(gpu, {"[cuda] expected", "use --device=cpu"});
}

}  // namespace
}  // namespace tokamak
