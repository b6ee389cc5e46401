// Ranks of one machine meet: a kernel of each ends when all others have begun theirs, and with it what they had asked
// their copy engines for before (backend/cuda/nccl/mailbox.h).
#include "backend/cuda/kernels/std.cuh"

using namespace tokamak;

constexpr int kMostRanks = 16;  // as Mailbox::kMostRanks

/// Of each rank, in its own memory: how often each rank says that it has come, and behind these how often it has met
/// them.
struct Counts {
  uint32_t* of[kMostRanks];
};

__device__ inline void tell(uint32_t* count, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(count), "r"(value) : "memory");
}
__device__ inline uint32_t told(const uint32_t* count) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(count) : "memory");
  return value;
}
// In the host's memory, so it is not looked at often.
__device__ inline bool is_set(const int32_t* flag) { return *static_cast<const volatile int32_t*>(flag) != 0; }

__device__ inline void wait_for(const uint32_t* count, uint32_t value, const int32_t* given_up) {
  constexpr int kLooks = 256;
  while (true)
    for (int look = 0; look < kLooks; ++look) {
      if (int32_t(told(count) - value) >= 0) return;
      if (look == kLooks - 1 && is_set(given_up)) return;
    }
}

/// One warp, a thread a rank.
extern "C" __global__ void meet(Counts counts, int32_t rank, int32_t size, const int32_t* given_up) {
  tokamak::begin_waiting_kernel();
  volatile uint32_t* met = counts.of[rank] + kMostRanks;
  uint32_t turn = *met + 1;
  int32_t peer = int32_t(threadIdx.x);
  __syncwarp();
  if (peer < size && peer != rank) {
    __threadfence_system();
    tell(counts.of[peer] + rank, turn);
    wait_for(counts.of[rank] + peer, turn, given_up);
  }
  __syncwarp();
  if (peer == 0) *met = turn;
}
