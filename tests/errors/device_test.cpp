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
  EXPECT_TRUE(has(result.out, "\nCUDA: runtime ") || has(result.out, "\nCUDA: not built in; install")) << result.out;
}

// A library that does not open stands before the one that may be there.
TEST_F(Device, StartsWhereCudnnDoesNotOpen) {
  std::ofstream(folder_ / "libcudnn.so.9").flush();
  ::setenv("LD_LIBRARY_PATH", folder_.path().c_str(), 1);
  ProgramResult result = run_program(folder_.path(), {"--version"});
  ::unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(has(result.out, "no cuDNN (") || has(result.out, "CUDA: not built in")) << result.out;
}

}  // namespace
}  // namespace tokamak
