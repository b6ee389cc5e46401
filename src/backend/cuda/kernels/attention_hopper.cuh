// What attention and its gradient on Hopper's tensor cores share: heads of 64 or 128, rings of tiles in shared memory,
// and rows on their way to global memory. The text before this says Element, TOKAMAK_ELEMENT (kernels/hopper.cuh),
// kCausal, kDocuments (only with kCausal), kDropout, kFloat8 (not with several ranks), kRanks (several only with
// kCausal) and kHeadDim (64 or 128), and defines matrix_in_whole(): by which number dropout knows a head of this rank.
// Legend: B batch, T time, H heads, D head_dim, C = H * D; qkv is (B, T, 3C) with q | k | v; i tiles of queries, j of
// keys. Where kRanks are several, a rank's T rows of a sample are in a zig-zag, and keys and values in (kRanks B, T,
// 2C); i then are of the rank's rows, j of the sequence.
#pragma once

#include "backend/cuda/kernels/hopper.cuh"
#include "backend/cuda/kernels/dropout_random.cuh"
#include "backend/cuda/kernels/zigzag.cuh"

namespace tokamak {

constexpr int kPanels = kHeadDim / 64;  // of 64 columns, in which tiles lie one after the other
constexpr int kHeadSteps = kHeadDim / 16;  // of a product's sum over D
constexpr float kLog2E = 1.4426950408889634f;
constexpr int kFirstKey = kRanks > 1 ? 0 : 1;  // what is before keys, of the widths in the tensor that has them

struct Head {
  int b, h;
  __device__ Head(int index, int heads) : b(index / heads), h(index % heads) {}
};

/// What a block works on, one after the other: tiles of the first `shared` heads, which all blocks share, the cheapest
/// first and the blocks in turn from either end, so that all have about as much; then all tiles of heads of its own.
/// Of whatever a tile waits for in another block, that one comes earlier in this order.
struct Work {
  int heads, shared, tiles;  // of all samples, and a head's
  int round = -1;            // of the shared ones
  int index, rank = 0;       // the head and its tile, 0 the cheapest

  __device__ Work(int heads, int shared, int tiles) : heads(heads), shared(shared), tiles(tiles) {
    index = shared + int(blockIdx.x);
    if (shared > 0) share();
  }
  __device__ bool more() const { return index < heads; }
  __device__ bool is_shared() const { return index < shared; }
  __device__ void next() {
    if (is_shared())
      share();
    else if (++rank == tiles)
      rank = 0, index += int(gridDim.x);
  }

 private:
  /// The next shared tile. The first round is the one that lacks blocks.
  __device__ void share() {
    int blocks = int(gridDim.x), block = int(blockIdx.x), all = shared * tiles;
    int missing = (blocks - all % blocks) % blocks, place;
    do {
      ++round;
      place = round * blocks + (round % 2 ? blocks - 1 - block : block) - missing;
    } while (place < 0);
    rank = place < all ? place / shared : 0;
    index = place < all ? place % shared : shared + block;
  }
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
/// The high bytes of the halves of `high` (kFar: the low ones) over the other bytes of those of `low`.
template <bool kFar>
__device__ inline uint32_t numbers(uint32_t high, uint32_t low) {
  uint32_t both;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(both) : "r"(high), "r"(low), "n"(kFar ? 0x2705 : 0x3614));
  return both;
}
/// A matrix (8, 8) of halves, of which each thread has two of row lane / 4, transposed.
__device__ inline uint32_t transposed(uint32_t halves) {
  uint32_t y;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(halves));
  return y;
}

/// Zeros in what dropout drops of 16 rows and 16 columns of scores, or of their transpose, as the tensor cores hold
/// them: pairs of a thread's (r, c), (r + 8, c), (r, c + 8) and (r + 8, c + 8), r being lane / 4 and c twice lane % 4.
/// `place` is MatrixRandom's of query r and key c.
template <bool kTransposed>
__device__ inline void drop_pairs(const uint32_t* pairs, uint32_t* kept, const MatrixRandom& random, uint32_t threshold,
                                  uint32_t head, uint32_t place) {
  uint2 words = random.draw(head, place);
  if (kTransposed) words = {transposed(words.x), transposed(words.y)};
  uint32_t low = words.x ^ words.y;
  uint32_t far_key = kept_halves(numbers<true>(words.x, low), threshold);
  uint32_t far_query = kept_halves(numbers<false>(words.y, low), threshold);
  kept[0] = pairs[0] & kept_halves(numbers<false>(words.x, low), threshold);
  kept[1] = pairs[1] & (kTransposed ? far_key : far_query);
  kept[2] = pairs[2] & (kTransposed ? far_query : far_key);
  kept[3] = pairs[3] & kept_halves(numbers<true>(words.y, low), threshold);
}

/// Rows of a tensor from `column` on, as a tile.
template <int kElements>
__device__ inline void load_rows(Element (&to)[kElements], const TensorMap& tensor, int column, int row, int b,
                                 uint64_t* barrier, uint64_t policy) {
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel)
    load_box(to + panel * (kElements / kPanels), tensor, column + panel * 64, row, b, barrier, policy);
}

/// From a matrix to its part in step x of a sum over D, in a tile of so many rows.
__device__ inline uint64_t along_head(int x, int rows) { return x % 4 * kAlongRows + x / 4 * uint64_t(rows * 128 >> 4); }

/// The warp's 16 rows of a product (64, 64) times `factor`, as the copy engine takes them.
__device__ inline void stage_rows(void* to, const float* x, float factor, const Worker& w) {
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

constexpr int kPanelBytes = kWarpRows * 128;  // of what a warp stages

/// The warp's 16 rows of a product to rows of a tensor, through shared memory that may be written again: a panel after
/// the other.
template <int N>
__device__ inline void write_rows(const TensorMap& tensor, void* staged, const float (&x)[N], float factor, int column,
                                  int row, int b, const Worker& w) {
  auto* bytes = static_cast<uint8_t*>(staged);
#pragma unroll
  for (int panel = 0; panel < N / 32; ++panel) stage_rows(bytes + panel * kPanelBytes, x + 32 * panel, factor, w);
  publish_stores();
  __syncwarp();
  if (w.lane != 0) return;
#pragma unroll
  for (int panel = 0; panel < N / 32; ++panel)
    store_box(tensor, bytes + panel * kPanelBytes, column + panel * 64, row, b, used_once());
  commit_copies();
}

/// Eight elements times `factor` in eight bits.
template <typename Float8>
__device__ inline Vector<Float8, 8> to_float8(const Vector<Element, 8>& x, float factor) {
  Vector<Float8, 8> y;
#pragma unroll
  for (int e = 0; e < 8; ++e) from_float(to_float(x[e]) * factor, y[e]);
  return y;
}

/// The panels of 16 rows that stage_rows has left, times `factor` in eight bits, to rows that are `width` apart.
template <int kCount, typename Float8>
__device__ inline void write_float8(Float8* to, int64_t width, const void* staged, float factor, const Worker& w) {
  const auto* bytes = static_cast<const uint8_t*>(staged);
#pragma unroll
  for (int i = 0; i < kCount * 4; ++i) {
    int panel = i / 4, row = i % 4 * 4 + w.lane / 8, chunk = w.lane % 8;
    const uint8_t* from = bytes + panel * kPanelBytes + row * 128 + (chunk ^ (row % 8)) * 16;
    *reinterpret_cast<Vector<Float8, 8>*>(to + row * width + panel * 64 + chunk * 8) =
        to_float8<Float8>(*reinterpret_cast<const Vector<Element, 8>*>(from), factor);
  }
}

}  // namespace tokamak
