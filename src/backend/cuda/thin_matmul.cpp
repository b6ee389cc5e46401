#include "backend/cuda/thin_matmul.h"

#include "backend/cuda/codegen/function.h"
#include "backend/cuda/device_types.h"
#include "base/divide.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace tokamak::cuda {
namespace {

constexpr int64_t kMostRows = 8;

struct Shape {
  int threads = 256;
  int columns = 0;        // of a block, where b is (K, N)
  int rows_per_warp = 0;  // of b, where it is (N, K)
  int64_t blocks = 0;
};

// Narrow blocks where there are few columns, so that enough of them are at work; in a block so many threads that each
// has some loads under way.
Shape shape_of(const MatmulProblem& p) {
  constexpr int64_t kBlocks = 128, kLoads = 6;
  Shape shape;
  if (p.trans_b) {
    shape.rows_per_warp = p.m > 2 ? 2 : 4;
    shape.blocks = ceil_div(p.n, shape.threads / 32 * shape.rows_per_warp);
    return shape;
  }
  int64_t vector = 16 / dtype_bytes(p.input);
  for (int64_t lanes : {8, 4, 2}) {
    shape.columns = int(lanes * vector);
    shape.blocks = ceil_div(p.n, shape.columns);
    int64_t threads = int64_t(std::bit_floor(uint64_t(std::max<int64_t>(1, p.k * lanes / kLoads))));
    shape.threads = int(std::clamp<int64_t>(threads, 64, p.m > 1 ? 512 : 1024));
    if (shape.blocks >= kBlocks) break;
  }
  return shape;
}

class ThinMatmulKernel : public Kernel {
 public:
  ThinMatmulKernel(Context& context, const MatmulNode& node)
      : context_(context), form_(node.form), shape_(shape_of(node.problem)),
        function_(context.compiler->add(node.problem.trans_b ? "multiply_rows" : "multiply_columns",
                                        thin_matmul_source(node))) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    auto operand = [&](int at) -> const void* { return at >= 0 ? in[size_t(at)] : nullptr; };
    function_->launch(context_.queue(), {dim3(unsigned(shape_.blocks)), dim3(unsigned(shape_.threads))},
                      operand(form_.a), operand(form_.b), operand(form_.bias), operand(form_.addend),
                      out[size_t(form_.y)]);
  }

 private:
  Context& context_;
  MatmulForm form_;
  Shape shape_;
  std::shared_ptr<DeviceFunction> function_;
};

}  // namespace

bool thin_supports(const MatmulNode& node) {
  const MatmulProblem& p = node.problem;
  const MatmulForm& f = node.form;
  int64_t vector = 16 / dtype_bytes(p.input);
  bool plain = f.operand < 0 && f.argument < 0 && f.sums < 0;
  bool typed = !f.function || f.function->results[0].type.dtype == p.output;
  bool sizes = p.k % vector == 0 && (p.trans_b || p.n % vector == 0) && std::max(p.n, p.k) < int64_t(1) << 30;
  return p.batch == 1 && p.m <= kMostRows && !p.trans_a && plain && typed && sizes;
}

std::string thin_matmul_source(const MatmulNode& node) {
  const MatmulProblem& p = node.problem;
  Shape shape = shape_of(p);
  std::string function = node.form.function ? function_source(*node.form.function)
                                            : "__device__ inline float finish(float x, float) { return x; }\n";
  int vector = int(16 / dtype_bytes(p.input));
  return fmt::format(
             "#include \"backend/cuda/kernels/storage.cuh\"\n#include \"ops/scalar_math.h\"\nnamespace tokamak {{\n"
             "using Element = {};\nusing Output = {};\nconstexpr int kM = {}, kN = {}, kK = {}, kThreads = {}, "
             "kColumns = {}, kWarpRows = {};\nconstexpr bool kBias = {}, kAddend = {}, kFunction = "
             "{};\n{}}}\n",
             device_type(p.input), device_type(p.output), p.m, p.n, p.k, shape.threads, std::max(shape.columns, vector),
             std::max(shape.rows_per_warp, 1), node.form.bias >= 0, node.form.addend >= 0,
             node.form.function.has_value(), function) +
         std::string(embedded_source("backend/cuda/kernels/matmul_thin.cu"));
}

KernelPtr make_thin_matmul(Context& context, const MatmulNode& node) {
  return std::make_unique<ThinMatmulKernel>(context, node);
}

}  // namespace tokamak::cuda
