// Matrix products on Hopper's tensor cores with a pointwise function: P = A B (M, N), A (M, K), B (K, N) or,
// transposed, (N, K); sums in f32.
//
//   storing:  pre = P + bias, out = finish(pre)                                           as GELU
//   reading:  out = finish(P, pre), and where they are wanted the sums of its columns, before it is rounded
//                                                                                         as GELU's derivative at pre
// The function sees `pre` and P rounded, as they would come from memory. `out` may have eight bits: rounded to Element,
// times a scale.
//
// Clusters of two blocks go through the tiles of P, those with the same rows first. Both have the same columns, and
// each copies half of their tile of B to both. In a block one thread of the first warp group copies ahead; two groups
// multiply, 64 rows each, and leave their product in shared memory; the last one finishes it while they work on the
// next tile. (The division of labour is that of Thakkar et al., CUTLASS, "warp-specialized persistent" kernels, but for
// the group that finishes.)
//
// The text before this says Element, TOKAMAK_ELEMENT (kernels/hopper.cuh), Operand (what A and B are made of: Element,
// or eight bits, both with a scale and B transposed; A is of TOKAMAK_LEFT, B of e4m3), kTransposed, kReads, kSums,
// kNarrow and TOKAMAK_NARROW (the type of eight bits), and finish(), which ignores its second argument where kReads is
// false.
#include "backend/cuda/kernels/hopper.cuh"
#include "ops/scalar_math.h"

namespace tokamak {

constexpr bool kScaled = sizeof(Operand) == 1;
constexpr int kTileM = 128, kTileN = 192, kTileK = 128 / sizeof(Operand);  // rows of 128 bytes along the sum
constexpr int kSteps = 4;     // products along a tile's sum
constexpr int kStages = 4;    // tiles of A and B in shared memory
constexpr int kBlocks = 2;    // of a cluster
constexpr int kGroups = 2;    // of warps that multiply
constexpr int kWarps = 4;     // of a group
constexpr int kColumns = 64;  // of a chunk
constexpr int kChunks = kTileN / kColumns;

struct Stage {
  Operand a[kTileM * kTileK], b[kTileN * kTileK];
};
using Chunk = Element[kWarpRows * kColumns];  // rows of a warp

struct Shared {
  Stage stages[kStages];
  Chunk product[kGroups][kWarps][kChunks];
  Chunk beside[kWarps][kGroups];  // for each warp that finishes: `pre` on its way in, or `out` on its way out
  uint64_t full[kStages], empty[kStages];
  uint64_t made[kGroups][kWarps], taken[kGroups][kWarps];  // products
  uint64_t fetched[kWarps][kGroups];
};

/// As Arguments in backend/cuda/hopper_matmul.cpp.
struct Arguments {
  const Element* bias;  // (N)
  float* sums;          // (kWarps for each tile along M, N)
  const float *a_scale, *b_scale, *narrow_scale;
  int32_t m, n, k;
};

/// The tiles of a block: numbers first(), first() + stride(), ... below count.
struct Tiles {
  int across, count, steps;
  int rank = block_in_cluster();
  __device__ explicit Tiles(const Arguments& a) : across((a.n + kTileN - 1) / kTileN) {
    count = across * ((a.m + kBlocks * kTileM - 1) / (kBlocks * kTileM));
    steps = (a.k + kTileK - 1) / kTileK;
  }
  __device__ int first() const { return blockIdx.x / kBlocks; }
  __device__ int stride() const { return gridDim.x / kBlocks; }
  __device__ int row(int tile) const { return (tile / across * kBlocks + rank) * kTileM; }
  __device__ int column(int tile) const { return tile % across * kTileN; }
};

/// One thread copies tiles of A, and this block's half of those of B for both blocks.
__device__ inline void produce(Shared& s, const TensorMap& a, const TensorMap& b, const Tiles& tiles) {
  constexpr uint16_t kAll = (1 << kBlocks) - 1;
  Turn<kStages> turn;
  uint64_t policy = used_normally();
  for (int tile = tiles.first(); tile < tiles.count; tile += tiles.stride()) {
    int row = tiles.row(tile), column = tiles.column(tile);
    for (int k = 0; k < tiles.steps; ++k) {
      Stage& stage = s.stages[turn.stage];
      uint64_t* full = &s.full[turn.stage];
      wait(&s.empty[turn.stage], turn.parity ^ 1);
      arrive_expecting(full, sizeof(Stage));
      load_box(stage.a, a, k * kTileK, row, 0, full, policy);
      if constexpr (kTransposed) {
        int begin = tiles.rank * (kTileN / kBlocks);
        load_box_to(kAll, stage.b + begin * kTileK, b, k * kTileK, column + begin, 0, full, policy);
      } else {  // half of the rows of each matrix of 64 columns
        int begin = tiles.rank * (kTileK / kBlocks);
        for (int i = 0; i < kTileN; i += 64)
          load_box_to(kAll, stage.b + i * kTileK + begin * 64, b, column + i, k * kTileK + begin, 0, full, policy);
      }
      turn.next();
    }
  }
}

/// As multiply() of hopper.cuh, of eight bits: a (64, 32), of TOKAMAK_LEFT elements, and b (192, 32), e4m3, sums along
/// rows.
__device__ inline void multiply_float8(float (&d)[96], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k32.f32." TOKAMAK_LEFT ".e4m3 "
      "{" TOKAMAK_SUMS_96 "}, %96, %97, p, 1, 1;\n}"
      : TOKAMAK_HELD_96(d)
      : "l"(a), "l"(b), "r"(int(add)));
}

/// p = A B for the 64 rows of this warp group.
__device__ inline void multiply_tile(Shared& s, Turn<kStages>& turn, const Tiles& tiles, const Worker& w,
                                     float (&p)[kTileN / 2]) {
  int previous = 0;
  for (int k = 0; k < tiles.steps; ++k) {
    const Stage& stage = s.stages[turn.stage];
    wait(&s.full[turn.stage], turn.parity);
    uint64_t a = matrix(stage.a + w.group * 64 * kTileK), b = matrix(stage.b, 64 * kTileK * sizeof(Operand));
    hold(p);
    begin_products();
#pragma unroll
    for (int x = 0; x < kSteps; ++x)
      if constexpr (kScaled)
        multiply_float8(p, a + x * kAlongRows, b + x * kAlongRows, k > 0 || x > 0);
      else
        multiply<!kTransposed>(p, a + x * kAlongRows, b + x * (kTransposed ? kAlongRows : kDownRows), k > 0 || x > 0);
    commit_products();
    if (k > 0) {
      wait_products<1>();
      if (w.lane < kBlocks) arrive_at(&s.empty[previous], w.lane);
    }
    previous = turn.stage;
    turn.next();
  }
  wait_products<0>();
  hold(p);
  if (w.lane < kBlocks) arrive_at(&s.empty[previous], w.lane);
}

/// A chunk of the warp's rows as pairs, which each thread holds as it holds products, in a form for the copy engine.
__device__ inline void store_pairs(Chunk& to, const uint32_t (&pairs)[16], const Worker& w) {
  uint32_t row = shared_address(to) + w.lane % 16 * 128;
#pragma unroll
  for (int n = 0; n < 8; n += 2)
    store_matrices(row + ((n + w.lane / 16) ^ (w.lane % 8)) * 16, pairs[2 * n], pairs[2 * n + 1], pairs[2 * n + 2],
                   pairs[2 * n + 3]);
}
__device__ inline void load_pairs(const Chunk& from, uint32_t (&pairs)[16], const Worker& w) {
  uint32_t row = shared_address(from) + w.lane % 16 * 128;
#pragma unroll
  for (int n = 0; n < 8; n += 2)
    load_matrices(row + ((n + w.lane / 16) ^ (w.lane % 8)) * 16, pairs[2 * n], pairs[2 * n + 1], pairs[2 * n + 2],
                  pairs[2 * n + 3]);
}

/// The same in another order, for eight bits: pairs 2 n (and, eight rows below, 2 n + 1) are columns 16 (n / 2) + 4 t +
/// 2 (n % 2) of thread t of four, which so has four columns side by side.
__device__ inline void load_wide_pairs(const Chunk& from, uint32_t (&pairs)[16], const Worker& w) {
  int t = w.lane % 4;
#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      int row = w.lane / 4 + 8 * below;
      uint32_t at = shared_address(from) + row * 128 + ((2 * j + t / 2) ^ (row % 8)) * 16 + t % 2 * 8;
      asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                   : "=r"(pairs[4 * j + below]), "=r"(pairs[4 * j + 2 + below])
                   : "r"(at)
                   : "memory");
    }
}
__device__ inline void load(const Chunk& from, uint32_t (&pairs)[16], const Worker& w) {
  kNarrow ? load_wide_pairs(from, pairs, w) : load_pairs(from, pairs, w);
}

/// Four floats as elements of eight bits, the first one lowest.
__device__ inline uint32_t pack_narrow(float2 low, float2 high) {
  uint16_t pair, next;
  asm("cvt.rn.satfinite." TOKAMAK_NARROW "x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(low.y), "f"(low.x));
  asm("cvt.rn.satfinite." TOKAMAK_NARROW "x2.f32 %0, %1, %2;" : "=h"(next) : "f"(high.y), "f"(high.x));
  return uint32_t(next) << 16 | pair;
}

/// Pairs as load() gave them, in a form for the copy engine; those of eight bits times the scale, 64 bytes a row.
__device__ inline void store_finished(Chunk& to, const uint32_t (&pairs)[16], float scale, const Worker& w) {
  if constexpr (!kNarrow) {
    store_pairs(to, pairs, w);
  } else {
    uint32_t narrow[8], row = shared_address(to) + w.lane % 16 * 64;
    auto scaled = [&](uint32_t pair) {
      float2 x = unpack(pair, Element());
      return float2{x.x * scale, x.y * scale};
    };
#pragma unroll
    for (int i = 0; i < 8; ++i)
      narrow[i] = pack_narrow(scaled(pairs[i / 2 * 4 + i % 2]), scaled(pairs[i / 2 * 4 + 2 + i % 2]));
#pragma unroll
    for (int j = 0; j < 4; j += 2)
      store_matrices(row + ((j + w.lane / 16) ^ (w.lane / 2 % 4)) * 16, narrow[2 * j], narrow[2 * j + 1],
                     narrow[2 * j + 2], narrow[2 * j + 3]);
  }
}

/// Rounds 64 columns of a product, times the scale, from `column` on; where `pre` is stored the bias comes to them
/// before.
__device__ inline void round_chunk(const float* p, float scale, const Arguments& a, int column, const Worker& w,
                                   uint32_t (&pairs)[16]) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    float2 b{0, 0};
    int at = column + 8 * n + w.column;
    if (!kReads && at < a.n) b = unpack(__ldg(reinterpret_cast<const uint32_t*>(a.bias + at)), Element());
    float q[4];
    for (int i = 0; i < 4; ++i) q[i] = kScaled ? p[4 * n + i] * scale : p[4 * n + i];
    pairs[2 * n] = pack(q[0] + b.x, q[1] + b.y, Element());
    pairs[2 * n + 1] = pack(q[2] + b.x, q[3] + b.y, Element());
  }
}

/// What the warps of two groups do.
__device__ inline void multiply_tiles(Shared& s, const Arguments& a, const Tiles& tiles) {
  Worker w;
  Turn<kStages> turn;
  Turn<1> place;
  float scale = kScaled ? __ldg(a.a_scale) * __ldg(a.b_scale) : 1;
  for (int tile = tiles.first(); tile < tiles.count; tile += tiles.stride()) {
    float p[kTileN / 2];
    define(p);
    multiply_tile(s, turn, tiles, w, p);
    wait(&s.taken[w.group][w.warp], place.parity ^ 1);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      uint32_t pairs[16];
      round_chunk(p + 32 * c, scale, a, tiles.column(tile) + c * kColumns, w, pairs);
      store_pairs(s.product[w.group][w.warp][c], pairs, w);
    }
    publish_stores();
    __syncwarp();
    if (w.lane == 0) arrive(&s.made[w.group][w.warp]);
    place.next();
  }
}

/// Chunks of `pre` for a warp, in the order in which it finishes them.
struct Fetcher {
  const TensorMap& pre;
  const Tiles& tiles;
  int tile, row, column, chunk = 0;
  __device__ Fetcher(const TensorMap& pre, const Tiles& tiles, const Worker& w)
      : pre(pre), tiles(tiles), tile(tiles.first()) {
    place(w);
  }
  __device__ void place(const Worker& w) {
    row = tiles.row(tile) + w.warp * kWarpRows;
    column = tiles.column(tile);
  }
  /// Rows of group g. All threads must have used what they read there before.
  __device__ void fetch(Shared& s, int g, const Worker& w) {
    if (tile >= tiles.count) return;
    if (w.lane == 0) {
      uint64_t* fetched = &s.fetched[w.warp][g];
      arrive_expecting(fetched, sizeof(Chunk));
      load_box(s.beside[w.warp][g], pre, column + chunk * kColumns, row + g * 64, 0, fetched, used_once());
    }
    if (g + 1 < kGroups) return;
    if (++chunk < kChunks) return;
    chunk = 0;
    tile += tiles.stride();
    place(w);
  }
};

/// Of 2 kHalf sums this thread keeps half, and adds what the one that keeps the others has of them.
template <int kHalf>
__device__ inline void halve(float (&x)[16], bool upper) {
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    float kept = upper ? x[i + kHalf] : x[i], given = upper ? x[i] : x[i + kHalf];
    x[i] = kept + __shfl_xor_sync(0xffffffffu, given, 2 * kHalf);
  }
}

/// Sums of the columns over the rows that the warp has, from those of its threads.
__device__ inline void write_sums(float (&x)[16], float* sums, int column, int n_end, const Worker& w) {
  halve<8>(x, w.lane & 16);
  halve<4>(x, w.lane & 8);
  halve<2>(x, w.lane & 4);
  int pair = w.lane / 16 * 4 + w.lane / 8 % 2 * 2 + w.lane / 4 % 2;
  int at = column + (kNarrow ? pair / 2 * 16 + pair % 2 * 2 + w.column * 2 : pair * 8 + w.column);
  if (at < n_end) *reinterpret_cast<float2*>(sums + at) = {x[0], x[1]};
}

__device__ inline void leave(const TensorMap& to, const Chunk& from, int column, int row, const Worker& w) {
  if (w.lane != 0) return;
  store_box(to, from, column, row, 0, used_once());
  commit_copies();
}

/// A chunk of rows of group g becomes finish(P, pre), and the sums grow by it.
__device__ inline void finish_reading(Shared& s, Fetcher& fetcher, Chunk& product, int g, float scale,
                                      const Worker& w, float (&sums)[16]) {
  uint32_t pairs[16], pre[16];
  load(product, pairs, w);
  load(s.beside[w.warp][g], pre, w);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    float2 x = unpack(pre[i], Element()), p = unpack(pairs[i], Element());
    float y = finish(p.x, x.x), next = finish(p.y, x.y);
    pairs[i] = pack(y, next, Element());
    if (kSums) sums[i / 2 * 2] += y, sums[i / 2 * 2 + 1] += next;
  }
  if (kNarrow) __syncwarp();  // what others have read lies elsewhere
  store_finished(product, pairs, scale, w);
  publish_stores();
  __syncwarp();
  fetcher.fetch(s, g, w);
}

/// A chunk of rows of group g becomes finish(pre) in `beside`.
__device__ inline void finish_storing(Shared& s, const Chunk& product, int g, float scale, const Worker& w) {
  uint32_t pairs[16];
  load(product, pairs, w);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    float2 x = unpack(pairs[i], Element());
    pairs[i] = pack(finish(x.x, 0), finish(x.y, 0), Element());
  }
  if (w.lane == 0) wait_copies_read<3>();  // what left from there the last time
  __syncwarp();
  store_finished(s.beside[w.warp][g], pairs, scale, w);
  publish_stores();
  __syncwarp();
}

/// What the warps of the last group do: each finishes the rows that warps of its number have multiplied.
__device__ inline void finish_tiles(Shared& s, const TensorMap& out, const TensorMap& pre, const Arguments& a,
                                    const Tiles& tiles) {
  Worker w;
  Turn<1> place, fetched;
  float scale = kNarrow ? __ldg(a.narrow_scale) : 1;
  Fetcher fetcher(pre, tiles, w);
  for (int g = 0; g < kGroups && kReads; ++g) fetcher.fetch(s, g, w);
  for (int tile = tiles.first(); tile < tiles.count; tile += tiles.stride()) {
    int first_row = tiles.row(tile), row = first_row + w.warp * kWarpRows, column = tiles.column(tile);
    float* row_sums = a.sums + int64_t(first_row / kTileM * kWarps + w.warp) * a.n;
    for (int c = 0; c < kChunks; ++c, column += kColumns) {
      float sums[16] = {};
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        if (c == 0) wait(&s.made[g][w.warp], place.parity);
        Chunk& product = s.product[g][w.warp][c];
        if constexpr (kReads) {
          wait(&s.fetched[w.warp][g], fetched.parity);
          finish_reading(s, fetcher, product, g, scale, w, sums);
          leave(out, product, column, row + g * 64, w);
        } else {
          leave(pre, product, column, row + g * 64, w);
          finish_storing(s, product, g, scale, w);
          leave(out, s.beside[w.warp][g], column, row + g * 64, w);
        }
      }
      fetched.next();
      if (kSums) write_sums(sums, row_sums, column, a.n, w);
    }
    __syncwarp();
    if (w.lane == 0) {
      wait_copies_read();
      for (int g = 0; g < kGroups; ++g) arrive(&s.taken[g][w.warp]);
    }
    place.next();
  }
  if (w.lane == 0) wait_copies<0>();
}

__device__ inline void init_barriers(Shared& s) {
  for (int i = 0; i < kStages; ++i) {
    init_barrier(&s.full[i], 1);
    init_barrier(&s.empty[i], kBlocks * kGroups * kWarps);
  }
  for (int warp = 0; warp < kWarps; ++warp)
    for (int g = 0; g < kGroups; ++g) {
      init_barrier(&s.made[g][warp], 1);
      init_barrier(&s.taken[g][warp], 1);
      init_barrier(&s.fetched[warp][g], 1);
    }
  publish_barriers();
}

}  // namespace tokamak

// Grid: clusters. The boxes of a are (128, kTileK), those of b (96, kTileK) where it is transposed and else (32, 64),
// those of out and pre (16, 64).
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(512, 1)
    matmul(const __grid_constant__ tokamak::TensorMap a, const __grid_constant__ tokamak::TensorMap b,
           const __grid_constant__ tokamak::TensorMap out, const __grid_constant__ tokamak::TensorMap pre,
           tokamak::Arguments arguments) {
  using namespace tokamak;
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  if (threadIdx.x == 0) init_barriers(s);
  sync_cluster();
  begin_kernel();
  Tiles tiles(arguments);
  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x == 0) produce(s, a, b, tiles);
  } else if (threadIdx.x < 384) {
    take_registers<168>();
    multiply_tiles(s, arguments, tiles);
  } else {
    give_registers<120>();
    finish_tiles(s, out, pre, arguments, tiles);
  }
  sync_cluster();  // a block must be there as long as the other one writes to its memory
}

// Adds up rows of (rows, n), 32 columns a block, in a fixed order. Grid: n / 32 blocks of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024)
    sum_rows(const float* __restrict__ x, float* __restrict__ sums, int32_t rows, int32_t n) {
  using namespace tokamak;
  begin_kernel();
  __shared__ float parts[32][33];
  int c = threadIdx.x % 32, part = threadIdx.x / 32, column = blockIdx.x * 32 + c;
  float sum = 0;
  if (column < n)
#pragma unroll 8
    for (int row = part; row < rows; row += 32) sum += x[int64_t(row) * n + column];
  parts[part][c] = sum;
  __syncthreads();
  if (part > 0 || column >= n) return;
  sum = 0;
  for (int i = 0; i < 32; ++i) sum += parts[i][c];
  sums[column] = sum;
}
