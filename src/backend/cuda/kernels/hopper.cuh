// What Hopper's tensor cores and copy engine need: barriers in shared memory, also those of other blocks of a cluster,
// bulk copies, and products of a warp group (wgmma). PTX ISA, sections "mbarrier", "cp.async.bulk", "wgmma". For
// compute capability 9.0 (sm_90a) only. The text before this says Element, bf16 or f16, and TOKAMAK_ELEMENT, its name
// in PTX as a string.
#pragma once

#include "backend/cuda/kernels/held_sums.cuh"
#include "backend/cuda/kernels/storage.cuh"

namespace tokamak {

constexpr int kWarpRows = 16;  // rows of a product (64, N) that a warp holds

/// Where a ring of stages stands.
template <int kStages>
struct Turn {
  int stage = 0, parity = 0;
  __device__ void next() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

/// A thread that computes: its warp group (-1 for the first of the block) and its place in a product (64, N), of which
/// it holds rows `row` and row + 8, columns 8 n + column and the next one.
struct Worker {
  int group, warp, lane, row, column;
  __device__ Worker() {
    // From lane 0, so that the compiler knows these to be the same in a warp.
    int all_warps = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0);
    group = all_warps / 4 - 1;
    warp = all_warps % 4;
    lane = threadIdx.x % 32;
    row = warp * kWarpRows + lane / 4;
    column = lane % 4 * 2;
  }
  /// The first row of its warp in a tile of which each warp group has 64 rows.
  __device__ int warp_row() const { return group * 64 + warp * kWarpRows; }
};

/// A CUtensorMap, made on the host.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

__device__ inline uint32_t shared_address(const void* at) { return uint32_t(__cvta_generic_to_shared(at)); }

/// One thread prepares a barrier for `arrivals` arrivals a phase.
__device__ inline void init_barrier(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}
__device__ inline void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// Arrives, and says how many bytes the copy engine will bring in this phase.
__device__ inline void arrive_expecting(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
/// Arrives at the same barrier of a block of the cluster.
__device__ inline void arrive_at(uint64_t* barrier, int block) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(block)
      : "memory");
}
/// Waits until the phase of this parity is over.
__device__ inline void wait(uint64_t* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

/// What L2 shall do with the lines of a copy: drop them first (they are used once), or keep them longest.
__device__ inline uint64_t used_once() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline uint64_t used_again() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline uint64_t used_normally() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// Copies the box of a tensor of three dimensions that begins at (x, y, z), x the innermost, to shared memory.
__device__ inline void load_box(void* to, const TensorMap& map, int x, int y, int z, uint64_t* barrier,
                                uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}
/// The same, to the same place in all blocks of the cluster in `blocks` (a bit each), and to each one's barrier.
__device__ inline void load_box_to(uint16_t blocks, void* to, const TensorMap& map, int x, int y, int z,
                                   uint64_t* barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier)), "h"(blocks), "l"(policy)
      : "memory");
}
/// Copies contiguous bytes, a multiple of 16, to shared memory.
__device__ inline void load_bytes(void* to, const void* from, int bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

/// Copies from shared memory. They run by themselves: see wait_copies().
__device__ inline void store_box(const TensorMap& map, const void* from, int x, int y, int z, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%2, %3, %4}], [%1], %5;" ::"l"(
          &map),
      "r"(shared_address(from)), "r"(x), "r"(y), "r"(z), "l"(policy)
      : "memory");
}
__device__ inline void store_bytes(void* to, const void* from, int bytes, uint64_t policy) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes), "l"(policy)
               : "memory");
}
/// Adds floats to what is there.
__device__ inline void add_floats(float* to, const void* from, int bytes, uint64_t policy) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.f32 [%0], [%1], %2, %3;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes), "l"(policy)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Until all but the last `kPending` groups that this thread has committed are written.
template <int kPending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}
/// Until they have read shared memory, so that it can be written again.
template <int kPending = 0>
__device__ inline void wait_copies_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

/// Between threads of different blocks: what came before the store is seen by who has loaded what it stored.
__device__ inline void store_release(int32_t* at, int value) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
__device__ inline int load_acquire(const int32_t* at) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

/// Ordinary stores of this thread to shared memory become visible to the tensor cores and to the copy engine.
__device__ inline void publish_stores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

template <int kRegisters>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// This block's place in its cluster.
__device__ inline int block_in_cluster() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// Among all threads of the cluster.
__device__ inline void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Among the 128 threads of a warp group; barrier 0 is __syncthreads().
__device__ inline void sync_warp_group(int barrier) { asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory"); }

/// Stores four 8 x 8 matrices of 16-bit elements as the tensor cores hold them; lane l has the address of row l % 8 of
/// matrix l / 8.
__device__ inline void store_matrices(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

/// The other way: loads what store_matrices has stored.
__device__ inline void load_matrices(uint32_t address, uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(address)
               : "memory");
}

/// Two floats as two elements in a register, the first one low.
__device__ inline uint32_t pack(float low, float high, bf16) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
__device__ inline uint32_t pack(float low, float high, f16) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// The two elements of a register as floats.
__device__ inline float2 unpack(uint32_t pair, bf16) {
  return {__int_as_float(int32_t(pair << 16)), __int_as_float(int32_t(pair & 0xffff0000u))};
}
__device__ inline float2 unpack(uint32_t pair, f16) {
  return {to_float(f16{uint16_t(pair)}), to_float(f16{uint16_t(pair >> 16)})};
}

/// A matrix in shared memory for wgmma: rows of 64 elements (128 bytes), swizzled as a tensor map's SWIZZLE_128B does,
/// 8 rows after 8 rows; begins at a multiple of 1024 bytes. Rows may be the product's rows or columns (then the sum
/// runs along them) or the sum's index (transposed). Of a transposed one with more than 64 columns, matrices of 64 come
/// one after the other, each of `bytes`.
__device__ inline uint64_t matrix(const void* at, int bytes = 16) {
  constexpr uint64_t kSwizzle128 = uint64_t(1) << 62, kEightRows = uint64_t(1024 >> 4) << 32;
  return kSwizzle128 | kEightRows | uint64_t(bytes >> 4) << 16 | (shared_address(at) >> 4 & 0x3fff);
}
/// Steps of 16 along the sum: along rows, and from row to row.
constexpr uint64_t kAlongRows = 32 >> 4, kDownRows = 16 * 128 >> 4;

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most `kPending` of the committed groups are unfinished.
template <int kPending>
__device__ inline void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// Before CUDA 12.9 the compiler lets products wait for each other where their accumulators were not defined before.
constexpr bool kDefines = __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1209;
template <int N>
__device__ inline void define(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N && kDefines; ++i) d[i] = 0;
}

/// Keeps the compiler from moving accumulators while products are under way.
template <int N>
__device__ inline void hold(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// Products of a warp group over 16 elements of the sum: d (64, N), in each thread as the PTX ISA lays it out, is a b or
// d + a b. Matrices lie in shared memory, or `a` in registers.

/// a (64, 16) and b (128, 16), sums along rows.
__device__ inline void multiply_rows(float (&d)[64], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." TOKAMAK_ELEMENT "." TOKAMAK_ELEMENT " "
      "{" TOKAMAK_SUMS_64 "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : TOKAMAK_HELD_64(d)
      : "l"(a), "l"(b), "r"(int(add)));
}

/// a (64, 16) in registers and b (16, 128), whose sums run from row to row.
__device__ inline void multiply_columns(float (&d)[64], const uint32_t* a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." TOKAMAK_ELEMENT "." TOKAMAK_ELEMENT " "
      "{" TOKAMAK_SUMS_64 "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
      : TOKAMAK_HELD_64(d)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(add)));
}

/// a (64, 16) in registers and b (16, 64), whose sums run from row to row.
__device__ inline void multiply_columns(float (&d)[32], const uint32_t* a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TOKAMAK_ELEMENT "." TOKAMAK_ELEMENT " "
      "{" TOKAMAK_SUMS_32 "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"
      : TOKAMAK_HELD_32(d)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(add)));
}

/// a (16, 64) and b (16, 64), sums from row to row.
__device__ inline void multiply_columns(float (&d)[32], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TOKAMAK_ELEMENT "." TOKAMAK_ELEMENT " "
      "{" TOKAMAK_SUMS_32 "}, %32, %33, p, 1, 1, 1, 1;\n}"
      : TOKAMAK_HELD_32(d)
      : "l"(a), "l"(b), "r"(int(add)));
}

/// a (64, 16) and b (64, 16), sums along rows.
__device__ inline void multiply_rows(float (&d)[32], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TOKAMAK_ELEMENT "." TOKAMAK_ELEMENT " "
      "{" TOKAMAK_SUMS_32 "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : TOKAMAK_HELD_32(d)
      : "l"(a), "l"(b), "r"(int(add)));
}

/// a (64, 16), sums along rows, and b, whose sums run along rows (192, 16) or from row to row (16, 192): d (64, 192).
template <bool kDownB>
__device__ inline void multiply(float (&d)[96], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32." TOKAMAK_ELEMENT "." TOKAMAK_ELEMENT " "
      "{" TOKAMAK_SUMS_96 "}, %96, %97, p, 1, 1, 0, %99;\n}"
      : TOKAMAK_HELD_96(d)
      : "l"(a), "l"(b), "r"(int(add)), "n"(int(kDownB)));
}

}  // namespace tokamak
