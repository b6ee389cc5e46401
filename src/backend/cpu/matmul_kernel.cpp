// matmul; a fused_matmul is the reference's.
#include "backend/cpu/kernels.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/thin_matmul.h"
#include "ops/matmul_form.h"

namespace tokamak::cpu {
namespace {

MatmulShape shape_of(const MatmulForm& form) {
  MatmulShape shape;
  shape.batch = form.batch;
  shape.m = form.m;
  shape.n = form.n;
  shape.k = form.k;
  shape.trans_a = form.trans_a;
  shape.trans_b = form.trans_b;
  return shape;
}

MatmulOptions options_of(const MatmulForm& form) {
  return {.a = storage_of(form.formats.a), .b = storage_of(form.formats.b), .output = form.output};
}

class MatmulKernel : public Kernel {
 public:
  explicit MatmulKernel(const MatmulForm& form) : matmul_(shape_of(form), options_of(form)) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    matmul_.run(in[0], in[1], out[0], workspace_);
  }

  int64_t workspace_bytes() const override { return int64_t(matmul_.workspace_bytes()); }
  void use_workspace(void* memory) override { workspace_ = memory; }

 private:
  Matmul matmul_;
  void* workspace_ = nullptr;
};

class ThinMatmulKernel : public Kernel {
 public:
  explicit ThinMatmulKernel(const MatmulForm& form) : shape_(shape_of(form)), options_(options_of(form)) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    thin_matmul(shape_, options_, in[0], in[1], out[0]);
  }

 private:
  MatmulShape shape_;
  MatmulOptions options_;
};

}  // namespace

bool has_matmul(const Graph& graph, const Node& node) {
  MatmulForm form = read_matmul(graph, node);
  MatmulOptions options = options_of(form);
  bool sums = form.formats.accumulator == DType::kF32 && form.scale_a < 0;
  return sums && (is_thin(shape_of(form)) ? thin_supports(options) : Matmul::supports(options));
}

std::unique_ptr<Kernel> make_matmul_kernel(const Graph& graph, const Node& node) {
  MatmulForm form = read_matmul(graph, node);
  if (is_thin(shape_of(form))) return std::make_unique<ThinMatmulKernel>(form);
  return std::make_unique<MatmulKernel>(form);
}

int64_t matmul_scratch(const Graph& graph, const Node& node, int) {
  MatmulForm form = read_matmul(graph, node);
  if (is_thin(shape_of(form))) return 0;
  return int64_t(Matmul::workspace_bytes(shape_of(form), options_of(form)));
}

}  // namespace tokamak::cpu
