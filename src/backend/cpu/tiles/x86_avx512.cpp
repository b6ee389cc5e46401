// Compiled for CPUs with AVX-512 and its bf16, whatever the program is built for; so nothing here is inline or comes
// from other headers.
#include "backend/cpu/bf16_tiles.h"

#include <cpuid.h>
#include <immintrin.h>

namespace tokamak::cpu {
namespace {

using Floats = __m512;

__m512bh as_pairs(__m512i x) { return reinterpret_cast<__m512bh>(x); }
__m512i as_words(__m512bh x) { return reinterpret_cast<__m512i>(x); }

// C's tile stays in 16 registers: row i gets A's pair (i, k) times B's row k.
void multiply_tile(const TileProduct& p, float* c, const uint16_t* a, const uint16_t* b) {
  Floats sums[kTileSide];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kTileSide; ++i)
    sums[i] = p.accumulate ? _mm512_loadu_ps(c + i * kTileSide) : _mm512_setzero_ps();
  for (int64_t k = 0; k < p.k; k += kTileDepth, a += p.a.beside, b += p.b.below)
    for (int64_t pair = 0; pair < kTileDepth / 2; ++pair) {
      __m512bh right = as_pairs(_mm512_loadu_si512(b + pair * kTileDepth));
      const auto* left = reinterpret_cast<const int32_t*>(a) + pair;
#pragma GCC unroll 16
      for (int64_t i = 0; i < kTileSide; ++i)
        sums[i] = _mm512_dpbf16_ps(sums[i], as_pairs(_mm512_set1_epi32(left[i * kTileSide])), right);
    }
#pragma GCC unroll 16
  for (int64_t i = 0; i < kTileSide; ++i) _mm512_storeu_ps(c + i * kTileSide, sums[i]);
}

void multiply(const TileProduct& p) {
  for (int64_t n = 0; n < p.n / kTileSide; ++n)
    for (int64_t m = 0; m < p.m / kTileSide; ++m)
      multiply_tile(p, p.c.base + m * p.c.below + n * p.c.beside, p.a.base + m * p.a.below, p.b.base + n * p.b.beside);
}

void nothing() {}

// Its cores multiply f32 as fast without AMX.
bool is_intel() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx;
}

// Of the CPU, and the registers that its system keeps.
bool has_avx512_bf16() {
  constexpr unsigned kSaved = 0xe6, kUsesXsave = 1u << 27, kBf16 = 1u << 5;
  constexpr unsigned kFoundation = 1u << 16, kWords = 1u << 30, kShort = 1u << 31;  // F, BW, VL
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kUsesXsave) == 0) return false;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & kSaved) != kSaved) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & kFoundation) == 0 || (b & kWords) == 0 || (b & kShort) == 0)
    return false;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & kBf16) != 0;
}

// 2^x for x <= 127, relative error below 4e-7, and below 2^-124 where x is: 2^n P(r) with |r| <= 1/2, where P is the
// polynomial of degree 5 with the least relative error.
Floats exp2(Floats x) {
  const Floats magic = _mm512_set1_ps(12582912.0f);  // adding 1.5 * 2^23 rounds to an integer, in the lowest bits
  x = _mm512_max_ps(x, _mm512_set1_ps(-125.0f));
  Floats shifted = _mm512_add_ps(x, magic), r = _mm512_sub_ps(x, _mm512_sub_ps(shifted, magic));
  Floats p = _mm512_set1_ps(0.00132764099f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.00967554084f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.0555071347f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.240221197f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.693146967f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.00000007f));
  __m512i power = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), power));
}

// The words of the lower half in turn with those of the upper half.
__m512i interleave(__m512i halves) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, halves);
}

__m512i round_two(Floats low, Floats high) { return as_words(_mm512_cvtne2ps_pbh(high, low)); }

// Which lanes (queries) see which rows (keys).
struct Sight {
  __m512i begin, end;
  int32_t all_begin, all_end;  // the rows that all lanes see, in pairs; begin >= end: none

  Sight(const int32_t* begins, const int32_t* ends, int32_t rows)
      : begin(_mm512_loadu_si512(begins)), end(_mm512_loadu_si512(ends)) {
    int32_t first = _mm512_reduce_max_epi32(begin), last = _mm512_reduce_min_epi32(end);
    all_begin = first <= 0 ? 0 : (first + 1) / 2 * 2;
    all_end = last >= rows ? rows : last / 2 * 2;
    if (all_begin >= all_end) all_begin = all_end = rows;
  }
  __mmask16 of(int32_t row) const {
    __m512i at = _mm512_set1_epi32(row);
    return _mm512_cmple_epi32_mask(begin, at) & _mm512_cmpgt_epi32_mask(end, at);
  }
};

template <bool masked>
Floats greatest(const float* scores, int32_t begin, int32_t end, const Sight& sight, Floats top) {
  Floats even = top, odd = top;
  for (int32_t j = begin; j < end; j += 2) {
    Floats a = _mm512_loadu_ps(scores + j * kTileSide), b = _mm512_loadu_ps(scores + (j + 1) * kTileSide);
    if (masked) {
      even = _mm512_mask_max_ps(even, sight.of(j), even, a);
      odd = _mm512_mask_max_ps(odd, sight.of(j + 1), odd, b);
    } else {
      even = _mm512_max_ps(even, a);
      odd = _mm512_max_ps(odd, b);
    }
  }
  return _mm512_max_ps(even, odd);
}

// One of the two columns of tiles of a softmax.
struct SoftmaxColumn {
  const float *scores, *dropout;
  uint16_t* probabilities;
  Floats factor, top;  // of the base-2 logarithm: factor times the greatest score
  Floats even, odd;    // sums of the even and of the odd keys

  template <bool masked>
  Floats probability(int32_t j, const Sight& sight) const {
    Floats p = exp2(_mm512_fmsub_ps(_mm512_loadu_ps(scores + j * kTileSide), factor, top));
    return masked ? _mm512_maskz_mov_ps(sight.of(j), p) : p;
  }
  template <bool masked>
  void run(int32_t begin, int32_t end, const Sight& sight) {
    for (int32_t j = begin; j < end; j += 2) {
      Floats a = probability<masked>(j, sight), b = probability<masked>(j + 1, sight);
      even = _mm512_add_ps(even, a);
      odd = _mm512_add_ps(odd, b);
      if (dropout) {
        a = _mm512_mul_ps(a, _mm512_loadu_ps(dropout + j * kTileSide));
        b = _mm512_mul_ps(b, _mm512_loadu_ps(dropout + (j + 1) * kTileSide));
      }
      _mm512_storeu_si512(probabilities + j * kTileSide, interleave(round_two(a, b)));
    }
  }
};

void softmax_column(const TileSoftmax& s, int64_t column) {
  auto rows = int32_t(s.keys);
  int64_t first = column * kTileSide, place = column * s.keys * kTileSide;
  Sight sight(s.begin + first, s.end + first, rows);
  Floats before = _mm512_loadu_ps(s.top + first), top = before;
  top = greatest<true>(s.scores + place, 0, sight.all_begin, sight, top);
  top = greatest<false>(s.scores + place, sight.all_begin, sight.all_end, sight, top);
  top = greatest<true>(s.scores + place, sight.all_end, rows, sight, top);
  _mm512_storeu_ps(s.top + first, top);
  const Floats factor = _mm512_set1_ps(s.factor), nothing_seen = _mm512_set1_ps(-__builtin_inff());
  // There is no softmax of nothing: with no score seen yet, all is relative to 0.
  __mmask16 sees = _mm512_cmp_ps_mask(top, nothing_seen, _CMP_NEQ_OQ);
  Floats scaled = _mm512_maskz_mul_ps(sees, top, factor);
  Floats shrink = exp2(_mm512_fmsub_ps(before, factor, scaled));
  SoftmaxColumn c{s.scores + place,
                  s.dropout ? s.dropout + place : nullptr,
                  s.probabilities + place,
                  factor,
                  scaled,
                  _mm512_mul_ps(_mm512_loadu_ps(s.total + first), shrink),
                  _mm512_setzero_ps()};
  c.run<true>(0, sight.all_begin, sight);
  c.run<false>(sight.all_begin, sight.all_end, sight);
  c.run<true>(sight.all_end, rows, sight);
  _mm512_storeu_ps(s.total + first, _mm512_add_ps(c.even, c.odd));
  if (_mm512_cmp_ps_mask(before, top, _CMP_NEQ_UQ) == 0) return;
  float* sums = s.sums + column * s.sum_rows * kTileSide;
  for (int64_t i = 0; i < s.sum_rows; ++i, sums += kTileSide)
    _mm512_storeu_ps(sums, _mm512_mul_ps(_mm512_loadu_ps(sums), shrink));
}

// One column's row j: probability and the score's gradient.
struct Gradient {
  Floats probability, dscore;
};

struct GradColumn {
  const float *scores, *dprobabilities, *dropout;
  Floats factor, lse, delta;
  Sight sight;

  GradColumn(const TileScoreGrad& g, int64_t column)
      : scores(g.scores + column * kGroup * kTileSide), dprobabilities(g.dprobabilities + column * kGroup * kTileSide),
        dropout(g.dropout ? g.dropout + column * kGroup * kTileSide : nullptr), factor(_mm512_set1_ps(g.factor)),
        lse(_mm512_loadu_ps(g.lse + column * kTileSide)), delta(_mm512_loadu_ps(g.delta + column * kTileSide)),
        sight(g.begin + column * kTileSide, g.end + column * kTileSide, int32_t(kGroup)) {}

  template <bool masked>
  Gradient at(int32_t j) const {
    Floats p = exp2(_mm512_fmsub_ps(_mm512_loadu_ps(scores + j * kTileSide), factor, lse));
    if (masked) p = _mm512_maskz_mov_ps(sight.of(j), p);
    Floats grad = _mm512_loadu_ps(dprobabilities + j * kTileSide);
    if (!dropout) return {p, _mm512_mul_ps(p, _mm512_sub_ps(grad, delta))};
    Floats kept = _mm512_loadu_ps(dropout + j * kTileSide);
    return {_mm512_mul_ps(p, kept), _mm512_mul_ps(p, _mm512_fmsub_ps(grad, kept, delta))};
  }
};

template <bool masked>
void score_grad_rows(const TileScoreGrad& g, const GradColumn& left, const GradColumn& right, int32_t begin,
                     int32_t end) {
  for (int32_t j = begin; j < end; j += 2) {
    Gradient a = left.at<masked>(j), b = right.at<masked>(j);
    Gradient a1 = left.at<masked>(j + 1), b1 = right.at<masked>(j + 1);
    int64_t at = j / kTileSide * g.below + j % kTileSide * kTileDepth;
    _mm512_storeu_si512(g.probabilities + at, round_two(a.probability, b.probability));
    _mm512_storeu_si512(g.probabilities + at + kTileDepth, round_two(a1.probability, b1.probability));
    _mm512_storeu_si512(g.dscores + at, round_two(a.dscore, b.dscore));
    _mm512_storeu_si512(g.dscores + at + kTileDepth, round_two(a1.dscore, b1.dscore));
    _mm512_storeu_si512(g.dscores_right + j * kTileSide, interleave(round_two(a.dscore, a1.dscore)));
    _mm512_storeu_si512(g.dscores_right + kTileElements + j * kTileSide, interleave(round_two(b.dscore, b1.dscore)));
  }
}

// A 16 x 16 transposition: pairs of rows, then of pairs, then of quarters of a register.
void transpose(__m512i* r) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      r[i + 2 * k] = _mm512_unpacklo_epi64(t[i + k], t[i + 2 + k]);
      r[i + 2 * k + 1] = _mm512_unpackhi_epi64(t[i + k], t[i + 2 + k]);
    }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // r[4 q + i] has column i of each quarter, of rows 4 q to 4 q + 3
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

void store_rounded(uint16_t* to, Floats x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
}

}  // namespace

const TileUnits* avx512_bf16_units() {
  static const TileUnits units{"avx512_bf16", nothing, multiply, nothing};
  static const bool has = has_avx512_bf16();
  return has ? &units : nullptr;
}

const TileUnits* tile_units() {
  if (amx_units()) return amx_units();
  return is_intel() ? nullptr : avx512_bf16_units();
}

void pair_rows(const uint16_t* rows, int64_t ld, uint16_t* tile) {
  for (int64_t r = 0; r < kTileDepth; r += 2, rows += 2 * ld, tile += kTileDepth) {
    __m256i even = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows));
    __m256i odd = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + ld));
    _mm512_storeu_si512(tile, interleave(_mm512_inserti64x4(_mm512_castsi256_si512(even), odd, 1)));
  }
}

void transpose_words(const uint32_t* rows, int64_t ld, uint32_t* tile) {
  __m512i r[16];
#pragma GCC unroll 16
  for (int64_t i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(rows + i * ld);
  transpose(r);
#pragma GCC unroll 16
  for (int64_t i = 0; i < 16; ++i) _mm512_storeu_si512(tile + i * 16, r[i]);
}

void multiply_rows(const uint16_t* a, const uint16_t* b, int64_t count, int64_t width, float* sums) {
  for (int64_t r = 0; r < count; ++r) {
    Floats sum = _mm512_setzero_ps();
    for (int64_t i = 0; i < width; i += kTileDepth, a += kTileDepth, b += kTileDepth)
      sum = _mm512_dpbf16_ps(sum, as_pairs(_mm512_loadu_si512(a)), as_pairs(_mm512_loadu_si512(b)));
    sums[r] = _mm512_reduce_add_ps(sum);
  }
}

void round_rows(const float* tiles, int64_t beside, int64_t width, float factor, uint16_t* rows, int64_t ld) {
  for (int64_t d = 0; d < width; d += kTileSide, tiles += beside)
    for (int64_t r = 0; r < kTileSide; ++r)
      store_rounded(rows + r * ld + d, _mm512_mul_ps(_mm512_loadu_ps(tiles + r * kTileSide), _mm512_set1_ps(factor)));
}

void round_columns(const float* tiles, int64_t below, int64_t width, const float* factors, uint16_t* rows, int64_t ld) {
  const Floats factor = _mm512_loadu_ps(factors);
  for (int64_t d = 0; d < width; d += kTileSide, tiles += below) {
    __m512i r[16];
#pragma GCC unroll 16
    for (int64_t i = 0; i < 16; ++i)
      r[i] = _mm512_castps_si512(_mm512_mul_ps(_mm512_loadu_ps(tiles + i * kTileSide), factor));
    transpose(r);
#pragma GCC unroll 16
    for (int64_t i = 0; i < 16; ++i) store_rounded(rows + i * ld + d, _mm512_castsi512_ps(r[i]));
  }
}

void add_softmax(const TileSoftmax& s) {
  for (int64_t column = 0; column < 2; ++column) softmax_column(s, column);
}

void score_grad(const TileScoreGrad& g) {
  const GradColumn left(g, 0), right(g, 1);
  int32_t begin = left.sight.all_begin > right.sight.all_begin ? left.sight.all_begin : right.sight.all_begin;
  int32_t end = left.sight.all_end < right.sight.all_end ? left.sight.all_end : right.sight.all_end;
  if (begin >= end) begin = end = int32_t(kGroup);
  score_grad_rows<true>(g, left, right, 0, begin);
  score_grad_rows<false>(g, left, right, begin, end);
  score_grad_rows<true>(g, left, right, end, int32_t(kGroup));
}

}  // namespace tokamak::cpu
