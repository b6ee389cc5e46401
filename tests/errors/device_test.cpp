// Mistakes in --device, through the program itself.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tokamak
