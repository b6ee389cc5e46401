#include "backend/cuda/gradient_matmul.h"

#include "backend/cuda/device_types.h"
#include "backend/cuda/tensor_map.h"
#include "base/divide.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace tokamak::cuda {
namespace {

// As in kernels/matmul_gradient.cu.
constexpr int kTileM = 256, kTileN = 128, kTileK = 128, kBlocks = 2, kStages = 4, kThreads = 384;
constexpr int kSharedBytes = kStages * ((kTileM + kTileN) * kTileK + 2 * 8);
struct Arguments {
  void* out;
  const float *a_scale, *b_scale;
  int32_t m, n, k;
};

constexpr int64_t kMostParts = 16;
constexpr int64_t kScratchLimit = int64_t(128) << 20;
// What an element of a part costs, written, read and written once more, in steps of the tensor cores: 12 bytes at some
// 4 TB/s beside a step of a tile, 128 terms of 256 x 128 elements, in some 0.8 us.
constexpr double kStepSeconds = 0.8e-6, kElementSeconds = 12 / 4e12;

// The operand whose sums run from row to row comes first; the kernel computes the transposed product where that is b.
struct Sizes {
  int64_t m, n, k;
  int64_t tiles() const { return ceil_div(m, kTileM) * ceil_div(n, kBlocks * kTileN); }
};
bool is_turned(const MatmulProblem& p) { return !p.trans_a; }
Sizes sizes_of(const MatmulProblem& p) { return is_turned(p) ? Sizes{p.n, p.m, p.k} : Sizes{p.m, p.n, p.k}; }

const char* ptx_name(NumberFormat format) { return format == NumberFormat::kF8E5M2 ? "e5m2" : "e4m3"; }

class GradientMatmulKernel : public Kernel {
 public:
  GradientMatmulKernel(Context& context, const MatmulNode& node)
      : context_(context), node_(node), parts_(gradient_parts(node.problem, context.info.multiprocessors)) {
    std::string source = gradient_matmul_source(node.problem, parts_);
    multiply_ = context.compiler->add("multiply_gradient", source);
    if (parts_ > 1) add_parts_ = context.compiler->add("add_parts", source);
  }

  int64_t workspace_bytes() const override {
    return gradient_scratch_bytes(node_.problem, context_.info.multiprocessors);
  }
  void use_workspace(void* workspace) override { parts_memory_ = workspace; }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    const MatmulForm& form = node_.form;
    const MatmulProblem& p = node_.problem;
    Sizes s = sizes_of(p);
    bool turned = is_turned(p);
    const void *a = in[size_t(turned ? form.b : form.a)], *b = in[size_t(turned ? form.a : form.b)];
    void* made = out[size_t(form.y)];
    if (form.addend >= 0 && in[size_t(form.addend)] != made)
      TOKAMAK_CUDA(cudaMemcpyAsync(made, in[size_t(form.addend)], size_t(p.output_bytes()), cudaMemcpyDeviceToDevice,
                                   context_.queue()));
    auto map = [](const void* base, int64_t columns, int64_t rows) {
      return tensor_map(base, DType::kF8E4M3, {columns, rows, 1}, {128, 128, 1});
    };
    auto scale = [&](int input) { return static_cast<const float*>(in[size_t(input)]); };
    Arguments arguments{parts_ > 1 ? parts_memory_ : made,
                        scale(form.scale_a),
                        scale(form.scale_b),
                        int32_t(s.m),
                        int32_t(s.n),
                        int32_t(s.k)};
    multiply_->launch(context_.queue(), {dim3(block_count(s)), dim3(kThreads), kSharedBytes}, map(a, s.m, s.k),
                      map(b, s.k, s.n), arguments);
    int64_t count = s.m * s.n;
    if (add_parts_)
      add_parts_->launch(context_.queue(), {dim3(unsigned(ceil_div(count, 4 * 256))), dim3(256)},
                         static_cast<const float*>(parts_memory_), made, scale(form.scale_a), scale(form.scale_b),
                         count);
  }

 private:
  unsigned block_count(const Sizes& s) const {
    return unsigned(kBlocks * std::min<int64_t>(s.tiles() * parts_, context_.info.multiprocessors / kBlocks));
  }

  Context& context_;
  MatmulNode node_;
  int64_t parts_;
  std::shared_ptr<DeviceFunction> multiply_, add_parts_;
  void* parts_memory_ = nullptr;
};

}  // namespace

bool gradient_supports(const MatmulNode& node, Architecture a) {
  const MatmulProblem& p = node.problem;
  bool formats = is_float8(p.a) && is_float8(p.b) && p.scaled && p.accumulator == DType::kF32;
  bool output = p.output == DType::kF32 || (p.output == DType::kBF16 && !p.accumulate);
  bool sizes =
      p.batch == 1 && p.m % 16 == 0 && p.n % 16 == 0 && p.k % 16 == 0 && std::max({p.m, p.n, p.k}) < int64_t(1) << 30;
  return a.major == 9 && a.minor == 0 && formats && output && sizes && p.trans_a == p.trans_b &&
         p.epilogue == MatmulEpilogue::kNone && !node.form.prologue;
}

int64_t gradient_parts(const MatmulProblem& problem, int multiprocessors) {
  Sizes s = sizes_of(problem);
  int64_t clusters = std::max(multiprocessors / kBlocks, 1), steps = ceil_div(s.k, kTileK), best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t parts = 1; parts <= std::min(kMostParts, steps); ++parts) {
    if (parts > 1 && parts * s.m * s.n * int64_t(sizeof(float)) > kScratchLimit) break;
    double seconds = double(ceil_div(s.tiles() * parts, clusters) * ceil_div(steps, parts)) * kStepSeconds;
    if (parts > 1) seconds += double(parts * s.m * s.n) * kElementSeconds;
    if (seconds < least) least = seconds, best = parts;
  }
  return best;
}

int64_t gradient_scratch_bytes(const MatmulProblem& problem, int multiprocessors) {
  int64_t parts = gradient_parts(problem, multiprocessors);
  return parts > 1 ? parts * problem.m * problem.n * int64_t(sizeof(float)) : 0;
}

std::string gradient_matmul_source(const MatmulProblem& p, int64_t parts) {
  bool turned = is_turned(p);
  return fmt::format(
             "#include \"backend/cuda/kernels/storage.cuh\"\n#define TOKAMAK_LEFT \"{}\"\n#define TOKAMAK_RIGHT "
             "\"{}\"\nnamespace tokamak {{\nusing Output = {};\nconstexpr int kParts = {};\nconstexpr bool kAdds = {}, "
             "kTurned = {};\n}}\n",
             ptx_name(turned ? p.b : p.a), ptx_name(turned ? p.a : p.b), device_type(p.output), parts, p.accumulate,
             turned) +
         std::string(embedded_source("backend/cuda/kernels/matmul_gradient.cu"));
}

KernelPtr make_gradient_matmul(Context& context, const MatmulNode& node) {
  return std::make_unique<GradientMatmulKernel>(context, node);
}

}  // namespace tokamak::cuda
