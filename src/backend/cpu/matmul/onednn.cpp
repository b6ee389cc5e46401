// Matmul by oneDNN's matmul primitive: bias and GELU are fused as its bias and post-op, the workspace is its scratchpad.
#include "backend/cpu/matmul.h"

#include "base/error.h"
#include "base/parallel.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace tokamak::cpu {
namespace {

using dnnl::memory;

memory::data_type data_type(DType dtype) {
  TOKAMAK_CHECK(dtype == DType::kF32 || dtype == DType::kBF16, "matmul of {}", dtype_name(dtype));
  return dtype == DType::kF32 ? memory::data_type::f32 : memory::data_type::bf16;
}

// A batch of one is given as two dims: oneDNN has its fastest kernels there.
memory::desc matrix(const MatmulShape& s, int64_t rows, int64_t cols, DType dtype, bool trans, int64_t ld, int64_t stride) {
  memory::dims dims{rows, cols}, strides = trans ? memory::dims{1, ld} : memory::dims{ld, 1};
  if (s.batch > 1) {
    dims.insert(dims.begin(), s.batch);
    strides.insert(strides.begin(), stride);
  }
  return {dims, data_type(dtype), strides};
}

memory::desc bias_row(const MatmulShape& s) {
  memory::dims dims{1, s.n}, strides{s.n, 1};
  if (s.batch > 1) {
    dims.insert(dims.begin(), 1);
    strides.insert(strides.begin(), s.n);
  }
  return {dims, memory::data_type::f32, strides};
}

dnnl::primitive_attr attributes(const MatmulOptions& options) {
  TOKAMAK_CHECK(!(options.gelu && options.accumulate), "a matmul cannot accumulate through GELU");
  dnnl::post_ops ops;
  if (options.accumulate) ops.append_sum(1.0f);
  if (options.gelu) ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_gelu_tanh, 0.0f, 0.0f);
  dnnl::primitive_attr attr;
  attr.set_post_ops(ops);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::matmul::primitive_desc describe(const MatmulShape& s, const MatmulOptions& o, const dnnl::engine& engine) {
  auto a = matrix(s, s.m, s.k, o.input, s.trans_a, s.lda, s.stride_a);
  auto b = matrix(s, s.k, s.n, o.input, s.trans_b, s.ldb, s.stride_b);
  auto c = matrix(s, s.m, s.n, o.output, false, s.ldc, s.stride_c);
  auto desc = o.bias ? dnnl::matmul::desc(a, b, bias_row(s), c) : dnnl::matmul::desc(a, b, c);
  return {desc, attributes(o), engine};
}

}  // namespace

struct Matmul::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::matmul::primitive_desc desc;
  dnnl::matmul primitive;
  bool bias;

  Impl(const MatmulShape& shape, const MatmulOptions& options)
      : desc(describe(shape, options, engine)), primitive(desc), bias(options.bias) {}
};

Matmul::Matmul(const MatmulShape& shape, const MatmulOptions& options) {
  try {
    impl_ = std::make_unique<const Impl>(shape.filled(), options);
  } catch (const dnnl::error& e) {
    user_error("[matmul] expected oneDNN to know ({}, {}, {}) in {}, got '{}'; try precision fp32", shape.m, shape.n,
               shape.k, dtype_name(options.input), e.what());
  }
}
Matmul::~Matmul() = default;
Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;

size_t Matmul::workspace_bytes() const { return impl_->desc.scratchpad_desc().get_size(); }

std::string Matmul::implementation() const { return std::string("onednn ") + impl_->desc.impl_info_str(); }

void Matmul::run(const void* a, const void* b, const float* bias, void* c, void* workspace) const {
  const auto& [engine, desc, primitive, has_bias] = *impl_;
  // oneDNN takes pointers to non-const also for what it only reads.
  auto of = [&](const memory::desc& md, const void* data) { return memory(md, engine, const_cast<void*>(data)); };
  std::unordered_map<int, memory> args{{DNNL_ARG_SRC, of(desc.src_desc(), a)},
                                       {DNNL_ARG_WEIGHTS, of(desc.weights_desc(), b)},
                                       {DNNL_ARG_DST, of(desc.dst_desc(), c)},
                                       {DNNL_ARG_SCRATCHPAD, of(desc.scratchpad_desc(), workspace)}};
  if (has_bias) args.emplace(DNNL_ARG_BIAS, of(desc.bias_desc(), bias));
  dnnl::stream stream(engine);
  primitive.execute(stream, args);
  stream.wait();
}

}  // namespace tokamak::cpu
