#include "backend/cpu/matmul/onednn_pieces.h"

#include "base/divide.h"
#include "base/error.h"
#include "base/parallel.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

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

// Lengths of the pieces; all of m, n or k where splitting does not help.
struct PieceSizes {
  int64_t m, n, k;
};

constexpr int64_t kMostPieces = 4096;  // beyond, planning alone would take minutes

// Equal pieces in multiples of a panel.
int64_t even(int64_t size, int64_t longest) { return round_up(ceil_div(size, ceil_div(size, longest)), 64); }

// oneDNN 2.6 copies a B that lies as (k, n) into panels and slows down when they outgrow the cache: 149 -> 209 GFLOP/s
// a core at (4096, 768, 3072), 120 -> 210 at (4096, 768, 50304).
PieceSizes sizes_for_all_threads(const MatmulShape& s, const MatmulOptions& o) {
  constexpr int64_t kColumns = 768, kDepth = 1536, kFewRows = 256;
  // A sum over pieces of k would be rounded at each piece if C were bf16.
  bool split = s.batch == 1 && !s.trans_b && s.m >= kFewRows && o.a == DType::kF32 && o.b == DType::kF32 &&
               o.output == DType::kF32 && s.n / kColumns * (s.k / kDepth) < kMostPieces;
  if (!split) return {s.m, s.n, s.k};
  // With A transposed pieces of k gained nothing, and each costs a pass over C.
  return {s.m, even(s.n, kColumns), s.trans_a ? s.k : even(s.k, kDepth)};
}

// They follow from the shape alone, never from the number of threads. oneDNN 2.6 reads an A that lies as (k, m) fast in
// large pieces only: 55 and 142 GFLOP/s at (768, 3072, 1024) on two AVX2 cores.
PieceSizes sizes_for_one_thread(const MatmulShape& s) {
  int64_t rows = s.trans_a ? 384 : 128, columns = s.trans_a ? 1536 : 768;
  rows *= ceil_div(ceil_div(s.m, rows) * ceil_div(s.n, columns), kMostPieces);
  return {even(s.m, rows), even(s.n, columns), s.k};
}

// oneDNN's kernels for CPUs without AVX-512 divide sums among threads: their bits follow the number of threads.
bool divides_sums(const dnnl::matmul::primitive_desc& desc) {
  return std::string_view(desc.impl_info_str()).starts_with("gemm");
}

}  // namespace

dnnl::engine dnnl_cpu_engine() { return {dnnl::engine::kind::cpu, 0}; }

dnnl::matmul::primitive_desc describe_matmul(const MatmulShape& s, const MatmulOptions& o, bool adds_to_c,
                                             const dnnl::engine& engine) {
  auto a = matrix(s, s.m, s.k, o.a, s.trans_a, s.lda, s.stride_a);
  auto b = matrix(s, s.k, s.n, o.b, s.trans_b, s.ldb, s.stride_b);
  auto c = matrix(s, s.m, s.n, o.output, false, s.ldc, s.stride_c);
  return {dnnl::matmul::desc(a, b, c), attributes(adds_to_c), engine};
}

MatmulPieces::MatmulPieces(const MatmulShape& s, const MatmulOptions& o)
    : one_thread_each(divides_sums(describe_matmul(s, o, false, engine))), matrices(one_thread_each ? s.batch : 1) {
  PieceSizes size = one_thread_each ? sizes_for_one_thread(s) : sizes_for_all_threads(s, o);
  std::map<std::array<int64_t, 4>, size_t> known;
  for (int64_t m = 0; m < s.m; m += size.m)
    for (int64_t n = 0; n < s.n; n += size.n)
      for (int64_t k = 0; k < s.k; k += size.k) {
        MatmulShape part = s;
        part.m = std::min(size.m, s.m - m);
        part.n = std::min(size.n, s.n - n);
        part.k = std::min(size.k, s.k - k);
        if (one_thread_each) part.batch = 1;
        auto [kind, is_new] = known.try_emplace({part.m, part.n, part.k, k > 0}, kinds.size());
        if (is_new) kinds.push_back(describe_matmul(part, o, k > 0, engine));
        list.push_back({kind->second, s.trans_a ? k * s.lda + m : m * s.lda + k,
                        s.trans_b ? n * s.ldb + k : k * s.ldb + n, m * s.ldc + n});
      }
}

size_t MatmulPieces::scratchpad_bytes_of_a_piece() const {
  size_t bytes = 0;
  for (const auto& kind : kinds) bytes = std::max(bytes, kind.scratchpad_desc().get_size());
  return size_t(round_up(int64_t(bytes), 64));
}

size_t MatmulPieces::scratchpad_bytes() const {
  return scratchpad_bytes_of_a_piece() * size_t(one_thread_each ? num_threads() : 1);
}

}  // namespace tokamak::cpu
