// Matmul by oneDNN's matmul primitive; the workspace is its scratchpad. A large product with B as (k, n) goes in pieces
// of n and k, because oneDNN 2.6 copies such a B into panels and slows down when they outgrow the cache: 149 -> 209
// GFLOP/s a core at (4096, 768, 3072), 120 -> 210 at (4096, 768, 50304). Where the CPU has no product of bf16 (without
// AVX-512) operands become f32 first, in the workspace: right, though not fast.
#include "backend/cpu/matmul.h"

#include "backend/cpu/convert.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/parallel.h"

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

bool cpu_has_bf16() {
  static const bool has = [] {
    MatmulShape any{.m = 16, .n = 16, .k = 16};
    try {
      describe(any.filled(), {DType::kBF16, DType::kBF16, DType::kF32}, false, cpu_engine());
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return has;
}

// A product of bf16 as one of f32: elements from the first to the last of each operand, which lie in the workspace
// behind the scratchpad as they lie in memory. `c`: 0 where it is f32 anyway.
struct Widened {
  int64_t a = 0, b = 0, c = 0;

  Widened(const MatmulShape& s, const MatmulOptions& o) {
    if (o.a != DType::kBF16 || cpu_has_bf16()) return;
    a = (s.batch - 1) * s.stride_a + ((s.trans_a ? s.k : s.m) - 1) * s.lda + (s.trans_a ? s.m : s.k);
    b = (s.batch - 1) * s.stride_b + ((s.trans_b ? s.n : s.k) - 1) * s.ldb + (s.trans_b ? s.k : s.n);
    if (o.output == DType::kBF16) c = (s.batch - 1) * s.stride_c + (s.m - 1) * s.ldc + s.n;
  }
  bool any() const { return a > 0; }
  MatmulOptions options(const MatmulOptions& asked) const { return any() ? MatmulOptions() : asked; }
  static int64_t place(int64_t floats) { return round_up(floats * int64_t(sizeof(float)), kPlaceBytes); }
  size_t bytes(size_t scratchpad) const {
    if (!any()) return scratchpad;
    return size_t(round_up(int64_t(scratchpad), kPlaceBytes) + place(a) + place(b) + place(c));
  }

  static constexpr int64_t kPlaceBytes = 64;
};

void widen(const void* from, int64_t count, float* to) {
  constexpr int64_t kAtOnce = 1 << 14;
  parallel_for(count, kAtOnce,
               [&](int64_t begin, int64_t end, int) { load(DType::kBF16, from, begin, end - begin, to + begin); });
}

}  // namespace

struct Matmul::Impl {
  dnnl::engine engine = cpu_engine();
  MatmulShape shape;
  Widened widened;
  int64_t a_bytes, b_bytes, output_bytes;
  std::vector<Piece> pieces;
  std::vector<dnnl::matmul> primitives;  // by piece

  Impl(const MatmulShape& s, const MatmulOptions& asked) : shape(s), widened(s, asked) {
    MatmulOptions options = widened.options(asked);
    a_bytes = dtype_bytes(options.a), b_bytes = dtype_bytes(options.b), output_bytes = dtype_bytes(options.output);
    pieces = describe_pieces(shape, options, engine);
    for (const Piece& piece : pieces) primitives.emplace_back(piece.desc);
  }

  void run(const void* a, const void* b, void* c, void* workspace) const;
  void run_widened(const void* a, const void* b, void* c, void* workspace) const;
};

// Operands of two types have no kernel here that is worth the name.
bool Matmul::supports(const MatmulOptions& options) {
  auto is_known = [](DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; };
  return options.a == options.b && is_known(options.a) &&
         (options.output == DType::kF32 || options.output == options.a);
}

size_t Matmul::workspace_bytes(const MatmulShape& shape, const MatmulOptions& options) {
  try {
    Widened widened(shape.filled(), options);
    return widened.bytes(scratchpad_bytes(describe_pieces(shape.filled(), widened.options(options), cpu_engine())));
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

size_t Matmul::workspace_bytes() const { return impl_->widened.bytes(scratchpad_bytes(impl_->pieces)); }

std::string Matmul::implementation() const {
  return fmt::format("onednn {} in {} pieces{}", impl_->pieces[0].desc.impl_info_str(), impl_->pieces.size(),
                     impl_->widened.any() ? ", of bf16 as f32" : "");
}

void Matmul::run(const void* a, const void* b, void* c, void* workspace) const {
  impl_->widened.any() ? impl_->run_widened(a, b, c, workspace) : impl_->run(a, b, c, workspace);
}

void Matmul::Impl::run_widened(const void* a, const void* b, void* c, void* workspace) const {
  char* at = static_cast<char*>(workspace) + round_up(int64_t(scratchpad_bytes(pieces)), Widened::kPlaceBytes);
  auto take = [&](int64_t floats) {
    auto* taken = reinterpret_cast<float*>(at);
    at += Widened::place(floats);
    return taken;
  };
  float *wide_a = take(widened.a), *wide_b = take(widened.b), *wide_c = take(widened.c);
  widen(a, widened.a, wide_a);
  widen(b, widened.b, wide_b);
  if (widened.c == 0) return run(wide_a, wide_b, c, workspace);
  run(wide_a, wide_b, wide_c, workspace);
  parallel_for(shape.batch * shape.m, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t first = row / shape.m * shape.stride_c + row % shape.m * shape.ldc;
      store(DType::kBF16, wide_c + first, shape.n, c, first);
    }
  });
}

void Matmul::Impl::run(const void* a, const void* b, void* c, void* workspace) const {
  dnnl::stream stream(engine);
  // oneDNN takes pointers to non-const also for what it only reads.
  auto at = [&](const memory::desc& desc, const void* data, int64_t bytes) {
    return memory(desc, engine, static_cast<char*>(const_cast<void*>(data)) + bytes);
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const auto& desc = piece.desc;
    std::unordered_map<int, memory> args{{DNNL_ARG_SRC, at(desc.src_desc(), a, piece.a * a_bytes)},
                                         {DNNL_ARG_WEIGHTS, at(desc.weights_desc(), b, piece.b * b_bytes)},
                                         {DNNL_ARG_DST, at(desc.dst_desc(), c, piece.c * output_bytes)},
                                         {DNNL_ARG_SCRATCHPAD, at(desc.scratchpad_desc(), workspace, 0)}};
    primitives[i].execute(stream, args);
  }
  stream.wait();
}

}  // namespace tokamak::cpu
