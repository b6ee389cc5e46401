// Bytes of a GPU and seconds of a step by what they are for.
#pragma once

namespace tokamak {

/// Bytes of the fullest GPU.
struct MemoryByKind {
  double weights = 0;    // in f32, and where they are kept for the step, in a low type
  double gradients = 0;  // that outlive a micro-batch
  double optimizer = 0;
  double activations = 0;  // of the intermediate values what grows with the blocks
  double buffers = 0;      // all else: logits of a chunk, inputs, scratch memory of kernels

  double total() const { return weights + gradients + optimizer + activations + buffers; }
  MemoryByKind& operator+=(const MemoryByKind& other) {
    weights += other.weights, gradients += other.gradients, optimizer += other.optimizer;
    activations += other.activations, buffers += other.buffers;
    return *this;
  }
};
inline MemoryByKind operator*(double times, const MemoryByKind& m) {
  return {times * m.weights, times * m.gradients, times * m.optimizer, times * m.activations, times * m.buffers};
}

/// Seconds of a step. Their sum is its time.
struct TimeByKind {
  double matmul = 0, attention = 0, memory_bound = 0;
  double recomputed = 0;                               // forward work that is done again
  double data = 0, context = 0, tensor = 0, pipe = 0;  // communication while nothing else runs
  double bubble = 0;

  double communication() const { return data + context + tensor + pipe; }
  double total() const { return matmul + attention + memory_bound + recomputed + communication() + bubble; }
  TimeByKind& operator+=(const TimeByKind& other) {
    matmul += other.matmul, attention += other.attention, memory_bound += other.memory_bound;
    recomputed += other.recomputed, data += other.data, context += other.context, tensor += other.tensor;
    pipe += other.pipe, bubble += other.bubble;
    return *this;
  }
};
inline TimeByKind operator*(double times, const TimeByKind& t) {
  return {times * t.matmul,  times * t.attention, times * t.memory_bound, times * t.recomputed, times * t.data,
          times * t.context, times * t.tensor,    times * t.pipe,         times * t.bubble};
}

}  // namespace tokamak
