// What attention and its gradient on Hopper's tensor cores share: heads of 64, rings of tiles in shared memory, and
// rows on their way to global memory.
// The text before this says Element, TOKAMAK_ELEMENT (kernels/hopper.cuh), kCausal, kDocuments (only with kCausal) and
// kDropout.
// Legend: B batch, T time, H heads, D head_dim, C = H * D; qkv is (B, T, 3C) with q | k | v; i tiles of queries, j of
// keys.
#pragma once

#include "backend/cuda/kernels/hopper.cuh"
#include "backend/cuda/kernels/dropout_random.cuh"

namespace tokamak {

constexpr int kHeadDim = 64;  // columns of a tile
constexpr float kLog2E = 1.4426950408889634f;

struct Head {
  int b, h;
  __device__ Head(int index, int heads) : b(index / heads), h(index % heads) {}
};

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// As Dropout in backend/cuda/hopper_attention.cpp.
struct Dropout {
  const int32_t* rng;  // (seed, step)
  uint64_t stream;
  uint32_t threshold;  // in both halves
  float kept;          // the factor of what is kept
  __device__ MatrixRandom random(int time) const { return MatrixRandom(rng, stream, time); }
};

/// All bits of a half where its number, the low 15 bits, is at least the threshold (in both halves). As numbers of 16
/// bits they compare the same way; what is no number counts as more, and the threshold is one.
__device__ inline uint32_t kept_halves(uint32_t numbers, uint32_t threshold) {
  uint32_t kept;
  asm("{\n.reg .b32 positive;\nabs.f16x2 positive, %1;\nset.geu.u32.f16x2 %0, positive, %2;\n}"
      : "=r"(kept)
      : "r"(numbers), "r"(threshold));
  return kept;
}
/// All bits of a half where the sign of the low (kHigh: of the high) half of a, and of b for the second, is set.
template <bool kHigh>
__device__ inline uint32_t pair_mask(uint32_t a, uint32_t b) {
  uint32_t mask;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(mask) : "r"(a), "r"(b), "n"(kHigh ? 0xFFBB : 0xDD99));
  return mask;
}

/// What dropout keeps of 64 columns of a warp's scores, or of their transpose, as the tensor cores hold them: of the
/// thread's rows r and r + 8 and its columns c and c + 1 in each group of 16 columns, c + 8 and c + 9. A bit an element.
class KeptBits {
 public:
  /// `place` is MatrixRandom's of (r, c) in the first group, `next` from there to that of (r, c + 1).
  __device__ void draw(const MatrixRandom& random, const Dropout& dropout, uint32_t head, uint32_t place,
                       uint32_t next) {
    bits_ = 0;
#pragma unroll
    for (int group = 0; group < 4; ++group) {
      uint2 first = random.draw(head, place + group * 8 * next), second = random.draw(head, place + (group * 8 + 1) * next);
      const uint32_t words[] = {first.x, first.y, second.x, second.y};
#pragma unroll
      for (int i = 0; i < 4; ++i) bits_ |= kept_halves(words[i], dropout.threshold) & (0x00010001u << (group * 4 + i));
    }
  }

  /// Zeros in what is dropped of a group: pairs of (r, c), (r + 8, c), (r, c + 8) and (r + 8, c + 8).
  template <bool kTransposed>
  __device__ void apply(int group, const uint32_t* pairs, uint32_t* kept) const {
    uint32_t first_x = signs(group, 0), first_y = signs(group, 1), second_x = signs(group, 2), second_y = signs(group, 3);
    uint32_t x_high = pair_mask<true>(first_x, second_x), y_low = pair_mask<false>(first_y, second_y);
    kept[0] = pairs[0] & pair_mask<false>(first_x, second_x);
    kept[1] = pairs[1] & (kTransposed ? x_high : y_low);
    kept[2] = pairs[2] & (kTransposed ? y_low : x_high);
    kept[3] = pairs[3] & pair_mask<true>(first_y, second_y);
  }

 private:
  __device__ uint32_t signs(int group, int i) const { return bits_ << (15 - (group * 4 + i)); }

  uint32_t bits_;
};

/// The warp's 16 rows of a product (64, D) times `factor`, as the copy engine takes them.
__device__ inline void stage_rows(void* to, const float (&x)[32], float factor, const Worker& w) {
  uint32_t row = shared_address(to) + w.lane % 16 * 128;
#pragma unroll
  for (int n = 0; n < 8; n += 2) {
    const float* y = x + 4 * n;
    store_matrices(row + ((n + w.lane / 16) ^ (w.lane % 8)) * 16, pack(y[0] * factor, y[1] * factor, Element()),
                   pack(y[2] * factor, y[3] * factor, Element()), pack(y[4] * factor, y[5] * factor, Element()),
                   pack(y[6] * factor, y[7] * factor, Element()));
  }
}

/// Adds the 16 rows that stage_rows has left, rounded as they are, down columns 2 lane and 2 lane + 1.
__device__ inline void add_to_columns(float2& sum, const void* staged, const Worker& w) {
  const auto* bytes = static_cast<const uint8_t*>(staged);
#pragma unroll
  for (int row = 0; row < kWarpRows; ++row) {
    int at = row * 128 + ((w.lane * 4) ^ (row % 8 * 16));
    float2 x = unpack(*reinterpret_cast<const uint32_t*>(bytes + at), Element());
    sum.x += x.x;
    sum.y += x.y;
  }
}

/// Rows of a tensor, through shared memory that `staged` may be written again.
__device__ inline void write_rows(const TensorMap& tensor, void* staged, const float (&x)[32], float factor, int column,
                                  int row, int b, const Worker& w) {
  stage_rows(staged, x, factor, w);
  publish_stores();
  __syncwarp();
  if (w.lane != 0) return;
  store_box(tensor, staged, column, row, b, used_once());
  commit_copies();
}

}  // namespace tokamak
