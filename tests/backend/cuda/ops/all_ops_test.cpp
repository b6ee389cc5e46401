// Every case of every op (tests/ops) on the GPU against the interpreter: as it stands, as the kernel template that
// form_groups gives it, and both in bf16 and f16 where the op takes them. That they compile is tested without a GPU.
#include "backend/cuda/codegen/group_source.h"
#include "backend/cuda/nvrtc.h"
#include "base/error.h"
#include "exec/collective_kernel.h"
#include "ops/group_form.h"
#include "passes/form_groups.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/ops/harness.h"

#include <optional>

namespace tokamak::test {
namespace {

struct GpuCase {
  OpCase op_case;
  DType dtype;  // of its f32 inputs
};

void PrintTo(const GpuCase& c, std::ostream* out) { PrintTo(c.op_case, out); }

// The case with its f32 inputs in another type (but those that an op wants in f32), unless the op does not take that.
std::optional<OpCase> in_dtype(OpCase c, DType dtype) {
  if (dtype == DType::kF32) return c;
  if (c.body) return std::nullopt;  // its types are the body's
  bool changed = false;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    CaseInput& input = c.inputs[i];
    if (input.type.dtype == DType::kBF16 || input.type.dtype == DType::kF16) return std::nullopt;
    if (input.type.dtype != DType::kF32 || !(c.op->low_inputs >> i & 1)) continue;
    input.type.dtype = dtype;
    changed = true;
  }
  if (!changed) return std::nullopt;
  try {
    case_graph(c);
  } catch (const UserError&) {
    return std::nullopt;
  }
  return c;
}

std::vector<GpuCase> gpu_cases() {
  std::vector<GpuCase> cases;
  for (const OpCase& c : all_cases())
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
      if (auto changed = in_dtype(c, dtype)) cases.push_back({*changed, dtype});
  return cases;
}

class GpuOpTest : public ::testing::TestWithParam<GpuCase> {};

TEST_P(GpuOpTest, EqualsInterpreter) {
  const OpCase& c = GetParam().op_case;
  if (is_of_ranks(Node{.op = c.op})) GTEST_SKIP() << "needs ranks: tests/exec/collective_kernel_test.cpp";
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph plain = case_graph(c), grouped = plain;
  form_groups(grouped, {});
  Tolerance tolerance = tolerance_of(lowest_dtype(plain));
  for (uint64_t seed : {1, 2}) {
    std::vector<HostTensor> arguments = case_arguments(c, seed);
    for (const Graph* graph : {&plain, &grouped}) expect_gpu_equals(*graph, plain, arguments, tolerance);
  }
}

// What form_groups makes of the case is device code that NVRTC takes: an op's scalar function is nothing that only the
// CPU has. Needs no device.
TEST_P(GpuOpTest, CompilesForTheDevice) {
  Graph graph = case_graph(GetParam().op_case);
  form_groups(graph, {});
  for (const Node& node : graph.nodes())
    if (is_matrix_group(node)) {
      EXPECT_FALSE(cuda::compile_device_code(cuda::generate_group(node).source, {9, 0}).empty());
    }
}

std::string gpu_case_name(const ::testing::TestParamInfo<GpuCase>& info) {
  const OpCase& c = info.param.op_case;
  return std::string(c.op->name) + "_" + c.name + "_" + std::string(dtype_name(info.param.dtype));
}

INSTANTIATE_TEST_SUITE_P(All, GpuOpTest, ::testing::ValuesIn(gpu_cases()), gpu_case_name);

}  // namespace
}  // namespace tokamak::test
