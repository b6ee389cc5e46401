// What generated kernels of groups (backend/cuda/codegen) are made of: vectors that stay packed until they are used,
// reductions over the threads of a row in a fixed order, random numbers by the vector.
#pragma once

#include "backend/cuda/kernels/dropout_random.cuh"
#include "backend/cuda/kernels/vectors.cuh"
#include "ops/scalar_math.h"

namespace tokamak {

/// N elements as they lie in memory, each a float when it is read. Those of 16 bits are held in pairs, as the compiler
/// would else give each of them a register of its own.
template <typename T, int N, bool kPairs = sizeof(T) == 2 && N % 2 == 0>
struct Packed {
  using Word = T;
  static constexpr int kWords = N;
  T words[N];
  __device__ float operator[](int i) const { return to_float(words[i]); }
};
template <typename T, int N>
struct Packed<T, N, true> {
  using Word = uint32_t;
  static constexpr int kWords = N / 2;
  uint32_t words[N / 2];
  __device__ float operator[](int i) const { return to_float(T{uint16_t(words[i / 2] >> i % 2 * 16)}); }
};

template <int N, typename T>
__device__ inline Packed<T, N> load_packed(const T* from) {
  using Elements = Packed<T, N>;
  constexpr int kLength = kPiece<typename Elements::Word, Elements::kWords>;
  Elements packed;
#pragma unroll
  for (int p = 0; p < packed.kWords / kLength; ++p) {
    auto piece = reinterpret_cast<const Vector<typename Elements::Word, kLength>*>(from)[p];
#pragma unroll
    for (int i = 0; i < kLength; ++i) packed.words[p * kLength + i] = piece[i];
  }
  return packed;
}

/// The same address, of which the compiler does not know: what lies there is read again, not held in registers.
template <typename T>
__device__ inline const T* again(const T* from) {
  asm volatile("" : "+l"(from));
  return from;
}

/// Two neighbours, rounded in one instruction; `a` comes first in memory.
__device__ inline uint32_t pack_pair(float a, float b, bf16) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
  return pair;
}
__device__ inline uint32_t pack_pair(float a, float b, f16) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
  return pair;
}

// Beyond the largest number: that.
__device__ inline uint16_t pack_pair(float a, float b, f8e4m3) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(b), "f"(a));
  return pair;
}
__device__ inline uint16_t pack_pair(float a, float b, f8e5m2) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(b), "f"(a));
  return pair;
}

/// N floats as T, stored in pieces of up to 16 bytes.
template <int N, typename T>
__device__ inline void store_vector(T* to, const float* from) {
  if constexpr (sizeof(T) == 4 || N == 1) {
    store_floats<N>(to, from);
  } else {
    using Pair = decltype(pack_pair(0, 0, T()));
    constexpr int kPairs = kPiece<T, N> / 2;
#pragma unroll
    for (int p = 0; p < N / 2 / kPairs; ++p) {
      Vector<Pair, kPairs> piece;
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        const float* pair = from + 2 * (p * kPairs + i);
        piece[i] = pack_pair(pair[0], pair[1], T());
      }
      reinterpret_cast<Vector<Pair, kPairs>*>(to)[p] = piece;
    }
  }
}

/// Global to shared memory without a detour through registers; wait_for_staged() before the same thread reads it.
template <int N, typename T>
__device__ inline void stage(T* to, const T* from) {
  constexpr int kLength = kPiece<T, N>, kBytes = kLength * int(sizeof(T));
#pragma unroll
  for (int p = 0; p < N / kLength; ++p) {
    if constexpr (kBytes == 16)
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(to + p * kLength))),
          "l"(from + p * kLength)
          : "memory");
    else
      reinterpret_cast<Vector<T, kLength>*>(to)[p] = reinterpret_cast<const Vector<T, kLength>*>(from)[p];
  }
}
__device__ inline void wait_for_staged() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// A pair with 0 before it is the float: one instruction, and a faster one than that for a single number.
template <>
__device__ inline float rounded<bf16>(float x) {
  return __int_as_float(int32_t(pack_pair(0.0f, x, bf16())));
}

/// Uniform numbers of the elements first to first + N - 1; first is a multiple of N, a power of two.
template <int N>
__device__ inline void uniform_vector(const int32_t* rng, int64_t first, uint64_t stream, float* to) {
  if constexpr (N < 4) {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = uniform_element(rng, first + i, stream);
  } else {
    constexpr int kLength = N < 8 ? N : 8;
#pragma unroll
    for (int i = 0; i < N; i += kLength) {
      uint4 words = philox_words<7>(rng, (first + i) / 8, stream);
      bool later = kLength == 4 && first % 8 != 0;
      const uint32_t pairs[] = {later ? words.z : words.x, later ? words.w : words.y, words.z, words.w};
#pragma unroll
      for (int k = 0; k < kLength; ++k) to[i + k] = uniform_half(pairs[k / 2], k % 2);
    }
  }
}

/// The same of matrices of `rows` and `columns`, without the condition on `first`.
__device__ inline float matrix_uniform(const int32_t* rng, int64_t element, uint64_t stream, int rows, int columns) {
  int64_t row = element / columns;
  MatrixRandom random(rng, stream, columns);
  return float(random.number(uint32_t(row / rows), int(row % rows), int(element % columns))) * 0x1p-15f;
}
template <int N>
__device__ inline void matrix_uniform_vector(const int32_t* rng, int64_t first, uint64_t stream, int rows, int columns,
                                             float* to) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = matrix_uniform(rng, first + i, stream, rows, columns);
}

template <bool kValue>
struct Bool {
  static constexpr bool value = kValue;
};

struct Sum {
  __device__ static float start() { return 0; }
  __device__ static float combine(float a, float b) { return a + b; }
};
struct Max {
  __device__ static float start() { return -HUGE_VALF; }
  __device__ static float combine(float a, float b) { return fmaxf(a, b); }
};

/// The largest of bf16 elements without making them floats, two at a time.
struct PackedMax {
  uint32_t pair = 0xff80ff80u;  // -infinity
  __device__ void add(uint32_t other) { asm("max.bf16x2 %0, %0, %1;" : "+r"(pair) : "r"(other)); }
  __device__ float value() const {
    return fmaxf(__int_as_float(int32_t(pair << 16)), __int_as_float(int32_t(pair & 0xffff0000u)));
  }
};

template <int N>
__device__ inline void add_packed(PackedMax& top, const Packed<bf16, N>& packed) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) top.add(packed.words[i]);
}

/// N partial results of one thread as one.
template <typename How, int N>
__device__ inline float combine_own(const float* parts) {
  float sums[N];
#pragma unroll
  for (int i = 0; i < N; ++i) sums[i] = parts[i];
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2)
#pragma unroll
    for (int i = 0; i < half; ++i) sums[i] = How::combine(sums[i], sums[i + half]);
  return sums[0];
}

/// The kTeam threads of one of a block's kTeams rows wait for each other.
template <int kTeam, int kTeams>
__device__ inline void wait_for_team(int team) {
  if constexpr (kTeams == 1)
    __syncthreads();
  else
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(kTeam) : "memory");
}

/// Each of the values over the threads of a warp, all values at a time.
template <typename... How>
__device__ inline void combine_warp(float* values) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    int i = 0;
    ((values[i] = How::combine(values[i], __shfl_xor_sync(0xffffffffu, values[i], distance)), ++i), ...);
  }
}

/// Each of the values over the kTeam threads of a row, a warp or several, with one wait for all of them; all threads
/// get the same bits. `scratch` is the team's own: a float for each value of each warp.
template <int kTeam, int kTeams, typename... How>
__device__ inline void combine_team(float* values, float* scratch, int team) {
  combine_warp<How...>(values);
  if constexpr (kTeam > 32) {
    constexpr int kWarps = kTeam / 32, kCount = int(sizeof...(How));
    int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) % kTeam / 32;
    if (lane == 0)
      for (int i = 0; i < kCount; ++i) scratch[warp * kCount + i] = values[i];
    wait_for_team<kTeam, kTeams>(team);
    if constexpr (kWarps <= 4) {
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        int i = 0;
        ((values[i] = w == 0 ? scratch[i] : How::combine(values[i], scratch[w * kCount + i]), ++i), ...);
      }
    } else {
      int i = 0;
      ((values[i] = lane < kWarps ? scratch[lane * kCount + i] : How::start(), ++i), ...);
      combine_warp<How...>(values);
    }
  }
}

/// The row's element at a place, 0 where there is none.
template <typename T>
__device__ inline float pick(const T* row, int length, float place) {
  bool exists = place >= 0.0f && place < float(length) && float(int(place)) == place;
  return exists ? to_float(row[int(place)]) : 0.0f;
}

/// Over the kDown threads (a power of two) with the same place `x` of kAcross in the block; for y = 0.
template <typename How, int kAcross, int kDown, int N>
__device__ inline void combine_down(float* parts, int x, int y, float* scratch) {
  __syncthreads();  // whoever used the scratch before is done
  float* own = scratch + (y * kAcross + x) * N;
#pragma unroll
  for (int i = 0; i < N; ++i) own[i] = parts[i];
#pragma unroll
  for (int half = kDown / 2; half > 0; half /= 2) {
    __syncthreads();
    if (y < half)
#pragma unroll
      for (int i = 0; i < N; ++i) own[i] = How::combine(own[i], own[half * kAcross * N + i]);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) parts[i] = own[i];
}

/// One column of the partial results of kCount blocks, `stride` floats apart, in a block of (32, 32) threads; for
/// threadIdx.y = 0.
template <typename How, int kCount>
__device__ inline float combine_partials(const float* partial, int64_t stride, bool valid) {
  __shared__ float scratch[32 * 32];
  float total = How::start();
  if (valid)
    for (int block = int(threadIdx.y); block < kCount; block += 32)
      total = How::combine(total, partial[block * stride]);
  combine_down<How, 32, 32, 1>(&total, int(threadIdx.x), int(threadIdx.y), scratch);
  return total;
}

}  // namespace tokamak
