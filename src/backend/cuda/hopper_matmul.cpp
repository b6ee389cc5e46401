#include "backend/cuda/hopper_matmul.h"

#include "backend/cuda/codegen/function.h"
#include "backend/cuda/device_types.h"
#include "backend/cuda/tensor_map.h"
#include "base/divide.h"
#include "base/error.h"

#include <fmt/core.h>

#include <algorithm>

namespace tokamak::cuda {
namespace {

// As in kernels/matmul_hopper.cu.
constexpr int kTileM = 128, kTileN = 192, kRowBytes = 128, kBlocks = 2, kWarps = 4, kWarpRows = 16, kColumns = 64;
struct Arguments {
  const void* bias;
  float* sums;
  const float *a_scale, *b_scale, *narrow_scale;
  int32_t m, n, k;
};
// Four stages of a and b, a tile of the product, two chunks for each of four warps, barriers.
constexpr int kSharedBytes =
    4 * (kTileM + kTileN) * kRowBytes + (kTileM * kTileN + 2 * kWarps * kWarpRows * kColumns) * 2 + 32 * 8;

int64_t sum_row_count(const MatmulProblem& p) { return ceil_div(p.m, kBlocks * kTileM) * kBlocks * kWarps; }

class HopperMatmulKernel : public Kernel {
 public:
  HopperMatmulKernel(Context& context, const MatmulNode& node) : context_(context), node_(node) {
    std::string source = hopper_matmul_source(node);
    matmul_ = context.compiler->add("matmul", source);
    if (node.form.sums >= 0) sum_rows_ = context.compiler->add("sum_rows", source);
  }

  int64_t workspace_bytes() const override { return hopper_scratch_bytes(node_); }
  void use_workspace(void* workspace) override { partial_sums_ = static_cast<float*>(workspace); }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    const MatmulProblem& p = node_.problem;
    DType operand = storage_of(p.a);
    int along = kRowBytes / int(dtype_bytes(operand));  // elements of a tile's row
    auto map = [&](const void* base, int64_t rows, int64_t columns, int box_rows) {
      return tensor_map(base, operand, {columns, rows, 1}, {along, box_rows, 1});
    };
    auto result = [&](const void* base, DType type) {
      return tensor_map(base, type, {p.n, p.m, 1}, {kColumns, kWarpRows, 1});
    };
    const void* b = in[size_t(node_.form.b)];
    CUtensorMap b_map = p.trans_b ? map(b, p.n, p.k, kTileN / kBlocks) : map(b, p.k, p.n, along / kBlocks);
    Arguments a{bias(in),
                partial_sums_,
                scale(in, node_.form.scale_a),
                scale(in, node_.form.scale_b),
                scale(in, node_.form.narrow_scale),
                int32_t(p.m),
                int32_t(p.n),
                int32_t(p.k)};
    DType made = node_.form.narrow_scale >= 0 ? node_.form.narrow : p.output;
    matmul_->launch(context_.queue(), {dim3(block_count()), dim3(512), kSharedBytes},
                    map(in[size_t(node_.form.a)], p.m, p.k, kTileM), b_map, result(out[size_t(node_.form.y)], made),
                    result(pre(in, out), p.output), a);
    if (sum_rows_)
      sum_rows_->launch(context_.queue(), {dim3(unsigned(ceil_div(p.n, 32))), dim3(1024)},
                        static_cast<const float*>(partial_sums_), static_cast<float*>(out[size_t(node_.form.sums)]),
                        int32_t(sum_row_count(p)), int32_t(p.n));
  }

 private:
  const void* bias(std::span<const void* const> in) const {
    return node_.form.bias >= 0 ? in[size_t(node_.form.bias)] : nullptr;
  }
  static const float* scale(std::span<const void* const> in, int input) {
    return input >= 0 ? static_cast<const float*>(in[size_t(input)]) : nullptr;
  }
  // What the function is applied to, or reads.
  const void* pre(std::span<const void* const> in, std::span<void* const> out) const {
    return node_.form.operand >= 0 ? in[size_t(node_.form.operand)] : out[size_t(node_.form.argument)];
  }
  // As many clusters as run at once, or as there are tiles.
  unsigned block_count() const {
    const MatmulProblem& p = node_.problem;
    int64_t tiles = ceil_div(p.m, kBlocks * kTileM) * ceil_div(p.n, kTileN);
    return unsigned(kBlocks * std::min<int64_t>(tiles, context_.info.multiprocessors / kBlocks));
  }

  Context& context_;
  MatmulNode node_;
  std::shared_ptr<DeviceFunction> matmul_, sum_rows_;
  float* partial_sums_ = nullptr;
};

}  // namespace

bool hopper_supports(const MatmulNode& node, Architecture a) {
  const MatmulProblem& p = node.problem;
  bool hopper = a.major == 9 && a.minor == 0, float8 = is_float8(p.a) && p.b == NumberFormat::kF8E4M3;
  bool low = has_library_formats(p) && (float8 || (dtype_bytes(storage_of(p.a)) == 2 && p.output == storage_of(p.a)));
  const MatmulForm& f = node.form;
  bool reads = f.operand >= 0 && f.bias < 0 && f.argument < 0;
  bool stores = f.operand < 0 && f.bias >= 0 && f.argument >= 0 && f.sums < 0;
  bool form = f.function && (reads || stores) && f.function->results[0].type.dtype == p.output;
  bool sizes =
      p.n % (f.narrow_scale >= 0 ? 16 : 8) == 0 && p.k % 8 == 0 && std::max({p.m, p.n, p.k}) < int64_t(1) << 30;
  return hopper && low && form && sizes && p.batch == 1 && !p.trans_a;
}

int64_t hopper_scratch_bytes(const MatmulNode& node) {
  const MatmulProblem& p = node.problem;
  if (node.form.sums < 0) return 0;
  return sum_row_count(p) * p.n * int64_t(sizeof(float));
}

std::string hopper_matmul_source(const MatmulNode& node) {
  const MatmulProblem& p = node.problem;
  TOKAMAK_CHECK(node.form.function, "the own matmul is one with a function");
  return fmt::format(
             "#include \"backend/cuda/kernels/storage.cuh\"\n#include \"ops/scalar_math.h\"\n#define TOKAMAK_ELEMENT "
             "\"{0}\"\n#define TOKAMAK_LEFT \"{6}\"\nnamespace tokamak {{\n"
             "using Element = {0};\nusing Operand = {5};\nconstexpr bool kTransposed = {1}, kReads = {2}, kSums = "
             "{3}, kNarrow = {7};\n#define TOKAMAK_NARROW \"{8}\"\n{4}}}\n",
             dtype_name(p.output), p.trans_b, node.form.operand >= 0, node.form.sums >= 0,
             function_source(*node.form.function), device_type(storage_of(p.a)),
             p.a == NumberFormat::kF8E5M2 ? "e5m2" : "e4m3", node.form.narrow_scale >= 0,
             node.form.narrow == DType::kF8E5M2 ? "e5m2" : "e4m3") +
         std::string(embedded_source("backend/cuda/kernels/matmul_hopper.cu"));
}

KernelPtr make_hopper_matmul(Context& context, const MatmulNode& node) {
  return std::make_unique<HopperMatmulKernel>(context, node);
}

}  // namespace tokamak::cuda
