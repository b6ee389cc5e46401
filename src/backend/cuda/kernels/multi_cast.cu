// cast of many tensors to one type. The text before this says Target, the type.
#include "backend/cuda/kernels/tensor_list.cuh"
#include "backend/cuda/kernels/vectors.cuh"

using namespace tokamak;

constexpr int kThreads = 256;
constexpr int kAhead = 4;

/// Addresses of one tensor; it goes into the middle of another one where several are put side by side.
struct Tensor {
  const void* from;
  Target* to;
};

// A thread's vector is 16 bytes of the wider type, so that neighbours read and write without gaps. Behind a tensor of
// an odd length, in the middle of another one, there are no vectors.
template <typename From>
__device__ inline void cast_piece(const From* from, Target* to, int64_t count) {
  constexpr int kVector = 16 / int(sizeof(From) > sizeof(Target) ? sizeof(From) : sizeof(Target));
  bool aligned = reinterpret_cast<uint64_t>(to) % (kVector * sizeof(Target)) == 0;
  int64_t vectors = aligned ? count / kVector : 0;
  for (int64_t i0 = threadIdx.x; i0 < vectors; i0 += kThreads * kAhead) {
    float x[kAhead][kVector];
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (i0 + k * kThreads < vectors) load_floats<kVector>(from + (i0 + k * kThreads) * kVector, x[k]);
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (i0 + k * kThreads < vectors) store_floats<kVector>(to + (i0 + k * kThreads) * kVector, x[k]);
  }
  for (int64_t rest = vectors * kVector + threadIdx.x; rest < count; rest += kThreads)
    from_float(to_float(from[rest]), to[rest]);
}

extern "C" __global__ void __launch_bounds__(kThreads) multi_cast(const Piece* pieces, const Tensor* tensors) {
  tokamak::begin_kernel();
  Piece piece = pieces[blockIdx.x];
  Tensor tensor = tensors[piece.tensor];
  with_type(piece.dtype, [&](auto zero) {
    using From = decltype(zero);
    cast_piece(static_cast<const From*>(tensor.from) + piece.begin, tensor.to + piece.begin, piece.count);
  });
}
