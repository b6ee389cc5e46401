// Matrix products of eight bits for gradients of weights, on Hopper's tensor cores: P = A^T B^T (M, N), A (K, M), B (N,
// K). In A the sums run from row to row. The tensor cores take that of 16 bits alone, so A comes to them through
// registers, transposed on its way (ldmatrix on pairs of bytes, then bytes are put in order). B's sums run along rows.
//
// The tensor cores keep some 14 bits of a sum of eight bits. Each 128 terms are added to a sum in f32.
//
// Clusters of two blocks go through units of work: a tile of P for both (256 rows, 128 columns each), over all of K or
// a part of it. Both have the same rows, of which each copies half to both. In a block one thread of the first warp
// group copies ahead, two groups multiply, 128 rows each. Parts go to scratch memory, and add_parts adds them in their
// order.
//
// The text before this says TOKAMAK_LEFT and TOKAMAK_RIGHT, e4m3 or e5m2 of A and of B, Output, kParts, kAdds (P is
// added to what stands there) and kTurned (P^T is stored: (N, M)).
#define TOKAMAK_ELEMENT "bf16"
#include "backend/cuda/kernels/hopper.cuh"

namespace tokamak {

constexpr int kTileM = 256, kTileN = 128, kTileK = 128;
constexpr int kStages = 4;
constexpr int kBlocks = 2;              // of a cluster
constexpr int kGroups = 2, kWarps = 4;  // that multiply, and of a group
constexpr int kHalves = 2;              // of a group's 128 rows: one product each
constexpr int kSteps = 4;               // products along kTileK

struct Stage {
  uint8_t a[kGroups][kTileK * 128], b[kTileN * kTileK];
};
struct Shared {
  Stage stages[kStages];
  uint64_t full[kStages], empty[kStages];
};

/// As Arguments in backend/cuda/gradient_matmul.cpp.
struct Arguments {
  void* out;
  const float *a_scale, *b_scale;
  int32_t m, n, k;
};

/// The units of a cluster: numbers first(), first() + stride(), ... below count, those of one part first.
struct Units {
  int across, tiles, count, steps, part_steps;
  int rank = block_in_cluster();
  __device__ explicit Units(const Arguments& a) : across((a.n + kBlocks * kTileN - 1) / (kBlocks * kTileN)) {
    tiles = across * ((a.m + kTileM - 1) / kTileM);
    count = tiles * kParts;
    steps = (a.k + kTileK - 1) / kTileK;
    part_steps = (steps + kParts - 1) / kParts;
  }
  __device__ int first() const { return blockIdx.x / kBlocks; }
  __device__ int stride() const { return gridDim.x / kBlocks; }
  __device__ int part(int unit) const { return unit / tiles; }
  __device__ int row(int unit) const { return unit % tiles / across * kTileM; }
  __device__ int column(int unit) const { return (unit % across * kBlocks + rank) * kTileN; }
  __device__ int begin(int unit) const { return min(part(unit) * part_steps, steps); }
  __device__ int end(int unit) const { return min(begin(unit) + part_steps, steps); }
};

/// One thread copies tiles of B, and this block's half of those of A for both blocks.
__device__ inline void produce(Shared& s, const TensorMap& a, const TensorMap& b, const Units& units) {
  constexpr uint16_t kAll = (1 << kBlocks) - 1;
  Turn<kStages> turn;
  uint64_t policy = used_normally();
  for (int unit = units.first(); unit < units.count; unit += units.stride()) {
    int row = units.row(unit) + units.rank * 128, column = units.column(unit);
    for (int k = units.begin(unit); k < units.end(unit); ++k) {
      Stage& stage = s.stages[turn.stage];
      uint64_t* full = &s.full[turn.stage];
      wait(&s.empty[turn.stage], turn.parity ^ 1);
      arrive_expecting(full, sizeof(Stage));
      load_box_to(kAll, stage.a[units.rank], a, row, k * kTileK, 0, full, policy);
      load_box(stage.b, b, k * kTileK, column, 0, full, policy);
      turn.next();
    }
  }
}

/// Loads four 8 x 8 matrices of 16-bit elements transposed; lane l has the address of row l % 8 of matrix l / 8.
__device__ inline void load_transposed(uint32_t address, uint32_t (&x)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address)
               : "memory");
}

/// How a thread reads A. A matrix of ldmatrix has rows of K, and pairs of columns as elements; transposed, thread t of
/// four has of a pair of columns two rows of each matrix. It needs rows 4 t to 4 t + 3 of one column in a register: two
/// matrices have them, which of both has the first two differs with t, so that the eight rows of a matrix lie in
/// different banks. The columns of a pair become rows r and r + 8 of the product.
struct Reader {
  uint32_t offset, first_order, second_order;
  int chunk_swizzle;  // bits of the row that change the place of 16 bytes
  __device__ explicit Reader(const Worker& w) {
    int matrix = w.lane / 8, t = w.lane % 8 / 2;
    int row = matrix / 2 * 16 + 4 * t + (matrix % 2 ^ t / 2) * 2 + w.lane % 2;
    offset = row * 128;
    chunk_swizzle = row % 8;
    bool swapped = w.lane % 4 >= 2;
    first_order = swapped ? 0x2064 : 0x6420;
    second_order = swapped ? 0x3175 : 0x7531;
  }
  /// 64 columns from the `half`-th on, 16 of this warp, and kTileK rows: kSteps operands of four registers.
  __device__ void load(const uint8_t* a, int half, const Worker& w, uint32_t (&x)[4 * kSteps]) const {
    uint32_t at = shared_address(a) + offset + ((half * kWarps + w.warp) ^ chunk_swizzle) * 16;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      uint32_t pairs[4];
      load_transposed(at + s * 32 * 128, pairs);
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        x[4 * s + i] = __byte_perm(pairs[i], pairs[i + 1], first_order);
        x[4 * s + i + 1] = __byte_perm(pairs[i], pairs[i + 1], second_order);
      }
    }
  }
};

/// a (64, 32) in registers and b (128, 32), sums along rows: d (64, 128).
__device__ inline void multiply(float (&d)[64], const uint32_t* a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32." TOKAMAK_LEFT "." TOKAMAK_RIGHT " "
      "{" TOKAMAK_SUMS_64 "}, {%64, %65, %66, %67}, %68, p, 1, 1;\n}"
      : TOKAMAK_HELD_64(d)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(add)));
}

/// Begins the product of one half over a stage: into `part`, which held() waits for.
__device__ inline void begin_product(float (&part)[64], const uint32_t (&a)[4 * kSteps], const Stage& stage) {
  uint64_t b = matrix(stage.b);
  hold(part);
  begin_products();
#pragma unroll
  for (int x = 0; x < kSteps; ++x) multiply(part, a + 4 * x, b + x * kAlongRows, x > 0);
  commit_products();
}
__device__ inline void add_product(float (&sum)[64], float (&part)[64]) {
  wait_products<0>();
  hold(part);
#pragma unroll
  for (int i = 0; i < 64; ++i) sum[i] += part[i];
}

/// The product of a unit for the 128 rows of this warp group. While one half is multiplied the operand of the next is
/// loaded, and the other group multiplies while this one adds.
__device__ inline void multiply_unit(Shared& s, Turn<kStages>& turn, int steps, const Reader& reader, const Worker& w,
                                     float (&sum)[kHalves][64]) {
  uint32_t first[4 * kSteps], second[4 * kSteps];
  float part[64];
  define(part);
  if (steps > 0) {
    wait(&s.full[turn.stage], turn.parity);
    reader.load(s.stages[turn.stage].a[w.group], 0, w, first);
  }
  for (int k = 0; k < steps; ++k) {
    int now = turn.stage;
    const Stage& stage = s.stages[now];
    begin_product(part, first, stage);
    reader.load(stage.a[w.group], 1, w, second);
    add_product(sum[0], part);
    begin_product(part, second, stage);
    turn.next();
    if (k + 1 < steps) {
      wait(&s.full[turn.stage], turn.parity);
      reader.load(s.stages[turn.stage].a[w.group], 0, w, first);
    }
    add_product(sum[1], part);
    if (w.lane < kBlocks) arrive_at(&s.empty[now], w.lane);
  }
}

/// Two neighbours in a row, or in a column where P^T is stored. In memory they lie side by side.
__device__ inline void store_pair(Output* at, float x, float y) {
  Vector<Output, 2> pair;
  if (kAdds && kParts == 1) {
    pair = *reinterpret_cast<const Vector<Output, 2>*>(at);
    x += to_float(pair[0]), y += to_float(pair[1]);
  }
  from_float(x, pair[0]), from_float(y, pair[1]);
  *reinterpret_cast<Vector<Output, 2>*>(at) = pair;
}
__device__ inline void store_pair_of_part(float* at, float x, float y) { *reinterpret_cast<float2*>(at) = {x, y}; }

/// Writes 64 rows from `row` on of a product: rows 2 i and 2 i + 1 of a warp's are r and r + 8 of the tensor cores'.
__device__ inline void store(const float (&sum)[64], const Arguments& a, float scale, int part, int row, int column,
                             const Worker& w) {
  int m = row + w.warp * kWarpRows + w.lane / 4 * 2;
  auto put = [&](int64_t at, float x, float y) {
    if (kParts == 1)
      store_pair(static_cast<Output*>(a.out) + at, x * scale, y * scale);
    else
      store_pair_of_part(static_cast<float*>(a.out) + int64_t(part) * a.m * a.n + at, x, y);
  };
#pragma unroll
  for (int j = 0; j < kTileN / 8; ++j) {
    int n = column + 8 * j + w.column;
    if (n >= a.n || m >= a.m) continue;
    const float* x = sum + 4 * j;  // (r, n), (r, n + 1), (r + 8, n), (r + 8, n + 1)
    if (kTurned) {
      put(int64_t(n) * a.m + m, x[0], x[2]);
      put(int64_t(n + 1) * a.m + m, x[1], x[3]);
    } else {
      put(int64_t(m) * a.n + n, x[0], x[1]);
      put(int64_t(m + 1) * a.n + n, x[2], x[3]);
    }
  }
}

/// What the warps of two groups do.
__device__ inline void multiply_units(Shared& s, const Arguments& a, const Units& units) {
  Worker w;
  Reader reader(w);
  Turn<kStages> turn;
  float scale = __ldg(a.a_scale) * __ldg(a.b_scale);
  for (int unit = units.first(); unit < units.count; unit += units.stride()) {
    float sum[kHalves][64];
#pragma unroll
    for (int h = 0; h < kHalves; ++h)
#pragma unroll
      for (int i = 0; i < 64; ++i) sum[h][i] = 0;
    multiply_unit(s, turn, units.end(unit) - units.begin(unit), reader, w, sum);
#pragma unroll
    for (int h = 0; h < kHalves; ++h)
      store(sum[h], a, scale, units.part(unit), units.row(unit) + w.group * 128 + h * 64, units.column(unit), w);
  }
}

__device__ inline void init_barriers(Shared& s) {
  for (int i = 0; i < kStages; ++i) {
    init_barrier(&s.full[i], 1);
    init_barrier(&s.empty[i], kBlocks * kGroups * kWarps);
  }
  publish_barriers();
}

}  // namespace tokamak

// Grid: clusters. The boxes of a and b are 128 bytes wide and 128 rows.
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    multiply_gradient(const __grid_constant__ tokamak::TensorMap a, const __grid_constant__ tokamak::TensorMap b,
                      tokamak::Arguments arguments) {
  using namespace tokamak;
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  if (threadIdx.x == 0) init_barriers(s);
  sync_cluster();
  begin_kernel();
  Units units(arguments);
  if (threadIdx.x < 128) {
    give_registers<24>();
    if (threadIdx.x == 0) produce(s, a, b, units);
  } else {
    take_registers<240>();
    multiply_units(s, arguments, units);
  }
  sync_cluster();  // a block must be there as long as the other one writes to its memory
}

// Adds up kParts matrices of `count` elements, in their order, four elements a thread.
extern "C" __global__ void __launch_bounds__(256)
    add_parts(const float* __restrict__ parts, tokamak::Output* out, const float* __restrict__ a_scale,
              const float* __restrict__ b_scale, int64_t count) {
  using namespace tokamak;
  begin_kernel();
  int64_t i = (int64_t(blockIdx.x) * 256 + threadIdx.x) * 4;
  if (i >= count) return;
  float sum[4] = {};
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    float4 part = *reinterpret_cast<const float4*>(parts + p * count + i);
    sum[0] += part.x, sum[1] += part.y, sum[2] += part.z, sum[3] += part.w;
  }
  float scale = *a_scale * *b_scale;
  Vector<Output, 4> made;
  if (kAdds) made = *reinterpret_cast<const Vector<Output, 4>*>(out + i);
#pragma unroll
  for (int j = 0; j < 4; ++j) from_float((kAdds ? to_float(made[j]) : 0) + sum[j] * scale, made[j]);
  *reinterpret_cast<Vector<Output, 4>*>(out + i) = made;
}
