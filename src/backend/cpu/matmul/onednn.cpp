// Matmul by oneDNN's matmul primitive; the workspace is its scratchpad. A large product with B as (k, n) goes in pieces
// of n and k, because oneDNN 2.6 copies such a B into panels and slows down when they outgrow the cache: 149 -> 209
// GFLOP/s a core at (4096, 768, 3072), 120 -> 210 at (4096, 768, 50304).
#include "backend/cpu/matmul.h"

#include "base/error.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace tokamak::cpu {
namespace {

using dnnl::memory;

memory::data_type data_type(DType dtype) {
  TOKAMAK_CHECK(dtype == DType::kF32 || dtype == DType::kBF16, "matmul of {}", dtype_name(dtype));
  return dtype == DType::kF32 ? memory::data_type::f32 : memory::data_type::bf16;
}

// A batch of one is given as two dims: oneDNN has its fastest kernels there.
memory::desc matrix(const MatmulShape& s, int64_t rows, int64_t cols, DType dtype, bool trans, int64_t ld,
                    int64_t stride) {
  memory::dims dims{rows, cols}, strides = trans ? memory::dims{1, ld} : memory::dims{ld, 1};
  if (s.batch > 1) {
    dims.insert(dims.begin(), s.batch);
    strides.insert(strides.begin(), stride);
  }
  return {dims, data_type(dtype), strides};
}

// `adds`: to what lies in C.
dnnl::primitive_attr attributes(bool adds) {
  dnnl::post_ops ops;
  if (adds) ops.append_sum(1.0f);
  dnnl::primitive_attr attr;
  attr.set_post_ops(ops);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::matmul::primitive_desc describe(const MatmulShape& s, const MatmulOptions& o, bool adds,
                                      const dnnl::engine& engine) {
  auto a = matrix(s, s.m, s.k, o.a, s.trans_a, s.lda, s.stride_a);
  auto b = matrix(s, s.k, s.n, o.b, s.trans_b, s.ldb, s.stride_b);
  auto c = matrix(s, s.m, s.n, o.output, false, s.ldc, s.stride_c);
  return {dnnl::matmul::desc(a, b, c), attributes(adds), engine};
}

// One primitive's part of the product, with where its operands begin (in elements).
struct Piece {
  dnnl::matmul::primitive_desc desc;
  int64_t a, b, c;
};

// Lengths of the pieces of n and k; all of them where splitting does not help.
struct PieceSizes {
  int64_t n, k;
};

PieceSizes piece_sizes(const MatmulShape& s, const MatmulOptions& o) {
  constexpr int64_t kColumns = 768, kDepth = 1536, kFewRows = 256, kMostPieces = 4096;
  // A sum over pieces of k would be rounded at each piece if C were bf16.
  bool split = s.batch == 1 && !s.trans_b && s.m >= kFewRows && o.a == DType::kF32 && o.b == DType::kF32 &&
               o.output == DType::kF32 &&
               s.n / kColumns * (s.k / kDepth) < kMostPieces;  // beyond, planning alone would take minutes
  if (!split) return {s.n, s.k};
  auto even = [](int64_t size, int64_t longest) {  // equal pieces in multiples of a panel
    int64_t pieces = (size + longest - 1) / longest, length = (size + pieces - 1) / pieces;
    return (length + 63) / 64 * 64;
  };
  // With A transposed pieces of k gained nothing, and each costs a pass over C.
  return {even(s.n, kColumns), s.trans_a ? s.k : even(s.k, kDepth)};
}

std::vector<Piece> describe_pieces(const MatmulShape& s, const MatmulOptions& o, const dnnl::engine& engine) {
  PieceSizes size = piece_sizes(s, o);
  std::vector<Piece> pieces;
  for (int64_t n = 0; n < s.n; n += size.n)
    for (int64_t k = 0; k < s.k; k += size.k) {
      MatmulShape part = s;
      part.n = std::min(size.n, s.n - n);
      part.k = std::min(size.k, s.k - k);
      pieces.push_back(
          {describe(part, o, k > 0, engine), s.trans_a ? k * s.lda : k, s.trans_b ? n * s.ldb + k : k * s.ldb + n, n});
    }
  return pieces;
}

size_t scratchpad_bytes(const std::vector<Piece>& pieces) {
  size_t bytes = 0;
  for (const Piece& piece : pieces) bytes = std::max(bytes, piece.desc.scratchpad_desc().get_size());
  return bytes;
}

dnnl::engine cpu_engine() { return {dnnl::engine::kind::cpu, 0}; }

}  // namespace

struct Matmul::Impl {
  dnnl::engine engine = cpu_engine();
  int64_t a_bytes, b_bytes, output_bytes;
  std::vector<Piece> pieces;
  std::vector<dnnl::matmul> primitives;  // by piece

  Impl(const MatmulShape& shape, const MatmulOptions& options)
      : a_bytes(dtype_bytes(options.a)), b_bytes(dtype_bytes(options.b)), output_bytes(dtype_bytes(options.output)),
        pieces(describe_pieces(shape, options, engine)) {
    for (const Piece& piece : pieces) primitives.emplace_back(piece.desc);
  }
};

// Operands of two types have no kernel here that is worth the name.
bool Matmul::supports(const MatmulOptions& options) {
  auto is_known = [](DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; };
  return options.a == options.b && is_known(options.a) &&
         (options.output == DType::kF32 || options.output == options.a);
}

size_t Matmul::workspace_bytes(const MatmulShape& shape, const MatmulOptions& options) {
  try {
    return scratchpad_bytes(describe_pieces(shape.filled(), options, cpu_engine()));
  } catch (const dnnl::error&) {
    return 0;  // preparing the product says what is wrong
  }
}

Matmul::Matmul(const MatmulShape& shape, const MatmulOptions& options) {
  try {
    impl_ = std::make_unique<const Impl>(shape.filled(), options);
  } catch (const dnnl::error& e) {
    user_error("[matmul] expected oneDNN to know ({}, {}, {}) in {}, got '{}'; try precision fp32", shape.m, shape.n,
               shape.k, dtype_name(options.a), e.what());
  }
}
Matmul::~Matmul() = default;
Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;

size_t Matmul::workspace_bytes() const { return scratchpad_bytes(impl_->pieces); }

std::string Matmul::implementation() const {
  return fmt::format("onednn {} in {} pieces", impl_->pieces[0].desc.impl_info_str(), impl_->pieces.size());
}

void Matmul::run(const void* a, const void* b, void* c, void* workspace) const {
  dnnl::stream stream(impl_->engine);
  // oneDNN takes pointers to non-const also for what it only reads.
  auto at = [&](const memory::desc& desc, const void* data, int64_t bytes) {
    return memory(desc, impl_->engine, static_cast<char*>(const_cast<void*>(data)) + bytes);
  };
  for (size_t i = 0; i < impl_->pieces.size(); ++i) {
    const Piece& piece = impl_->pieces[i];
    const auto& desc = piece.desc;
    std::unordered_map<int, memory> args{{DNNL_ARG_SRC, at(desc.src_desc(), a, piece.a * impl_->a_bytes)},
                                         {DNNL_ARG_WEIGHTS, at(desc.weights_desc(), b, piece.b * impl_->b_bytes)},
                                         {DNNL_ARG_DST, at(desc.dst_desc(), c, piece.c * impl_->output_bytes)},
                                         {DNNL_ARG_SCRATCHPAD, at(desc.scratchpad_desc(), workspace, 0)}};
    impl_->primitives[i].execute(stream, args);
  }
  stream.wait();
}

}  // namespace tokamak::cpu
