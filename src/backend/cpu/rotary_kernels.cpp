// rotary_qkv and its gradient: rows in parallel; the angles of a row are turned into cosines and sines once for all
// heads. Sums are f32, in the order of the heads.
#include "ops/packed_rotary.h"
#include "ops/rotary.h"

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd.h"
#include "base/parallel.h"

#include <algorithm>
#include <cmath>

namespace tokamak::cpu {
namespace {

using Inputs = std::span<const void* const>;
using Outputs = std::span<void* const>;

constexpr int64_t kRowsAtOnce = 4;

// Where q, k and v lie, or their gradients, each an operand of its own or side by side in the first.
template <typename T, typename Pointer>
struct Projected {
  T* q;
  T* k;
  T* v;
  int64_t q_stride, kv_stride;  // from a row to the next

  Projected(const RotaryDims& d, bool is_packed, std::span<const Pointer> operands)
      : q(static_cast<T*>(operands[0])), k(is_packed ? q + d.H * d.D : static_cast<T*>(operands[1])),
        v(is_packed ? k + d.K * d.D : static_cast<T*>(operands[2])), q_stride(is_packed ? d.projected() : d.H * d.D),
        kv_stride(is_packed ? d.projected() : d.K * d.D) {}
};

bool is_packed(const Node& node) { return node.op == &op::packed_rotary || node.op == &op::packed_rotary_grad; }

// The cosines and sines of a row's angles.
struct Turns {
  const RotaryDims& d;
  const std::vector<float>& frequencies;
  std::vector<float> cos{frequencies}, sin{frequencies};

  void load(const int32_t* positions, int64_t row) {
    auto position = float(positions[row % (d.position_rows * d.T)]);
    for (size_t i = 0; i < frequencies.size(); ++i) {
      double angle = double(position * frequencies[i]);
      cos[i] = float(std::cos(angle));
      sin[i] = float(std::sin(angle));
    }
  }
};

template <typename T>
void turn_head(const Turns& turns, const T* from, T* to) {
  size_t half = turns.cos.size();
  for (size_t i = 0; i < half; ++i) {
    float a = to_float(from[i]), b = to_float(from[i + half]);
    to[i] = from_float<T>(a * turns.cos[i] - b * turns.sin[i]);
    to[i + half] = from_float<T>(b * turns.cos[i] + a * turns.sin[i]);
  }
}

// Turned back, and added.
template <typename T>
void add_back(const Turns& turns, const T* from, float* sum) {
  size_t half = turns.cos.size();
  for (size_t i = 0; i < half; ++i) {
    float a = to_float(from[i]), b = to_float(from[i + half]);
    sum[i] += a * turns.cos[i] + b * turns.sin[i];
    sum[i + half] += b * turns.cos[i] - a * turns.sin[i];
  }
}

template <typename T>
class RotaryKernel : public Kernel {
 public:
  RotaryKernel(const Graph& graph, const Node& node)
      : d_(rotary_dims(spec_of(graph, node))), is_packed_(is_packed(node)),
        frequencies_(rotary_frequencies(node.attrs)) {}

  void run(Inputs in, Outputs out) override {
    int64_t width = d_.H * d_.D;
    Projected<const T, const void*> from(d_, is_packed_, in);
    parallel_for(d_.B * d_.T, kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
      Turns turns{d_, frequencies_};
      for (int64_t row = begin; row < end; ++row) {
        turns.load(static_cast<const int32_t*>(in.back()), row);
        for (int64_t h = 0; h < d_.H; ++h) {
          int64_t kv = row * from.kv_stride + h / d_.group() * d_.D;
          T* to = static_cast<T*>(out[0]) + row * 3 * width + h * d_.D;
          turn_head(turns, from.q + row * from.q_stride + h * d_.D, to);
          turn_head(turns, from.k + kv, to + width);
          if (from.v + kv != to + 2 * width) std::copy_n(from.v + kv, d_.D, to + 2 * width);
        }
      }
    });
  }

 private:
  RotaryDims d_;
  bool is_packed_;
  std::vector<float> frequencies_;
};

template <typename T>
class RotaryGradKernel : public Kernel {
 public:
  RotaryGradKernel(const Graph& graph, const Node& node)
      : d_(rotary_dims(spec_of(graph, node))), is_packed_(is_packed(node)),
        frequencies_(rotary_frequencies(node.attrs)) {}

  void run(Inputs in, Outputs out) override {
    const auto* dqkv = static_cast<const T*>(in[0]);
    int64_t D = d_.D, width = d_.H * D;
    Projected<T, void*> to(d_, is_packed_, out);
    parallel_for(d_.B * d_.T, kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
      Turns turns{d_, frequencies_};
      std::vector<float> sum(static_cast<size_t>(D));
      auto put = [&](T* head) {
        for (int64_t i = 0; i < D; ++i) head[i] = from_float<T>(sum[size_t(i)]);
        std::fill(sum.begin(), sum.end(), 0.0f);
      };
      for (int64_t row = begin; row < end; ++row) {
        turns.load(static_cast<const int32_t*>(in[1]), row);
        const T* from = dqkv + row * 3 * width;
        for (int64_t h = 0; h < d_.H; ++h) {
          add_back(turns, from + h * D, sum.data());
          put(to.q + row * to.q_stride + h * D);
        }
        for (int64_t k = 0; k < d_.K; ++k) {
          const T* group = from + width + k * d_.group() * D;
          for (int64_t h = 0; h < d_.group(); ++h) add_back(turns, group + h * D, sum.data());
          put(to.k + row * to.kv_stride + k * D);
          for (int64_t h = 0; h < d_.group(); ++h)
            for (int64_t i = 0; i < D; ++i) sum[size_t(i)] += to_float(group[width + h * D + i]);
          put(to.v + row * to.kv_stride + k * D);
        }
      }
    });
  }

 private:
  RotaryDims d_;
  bool is_packed_;
  std::vector<float> frequencies_;
};

}  // namespace

bool has_rotary(const Graph& graph, const Node& node) {
  DType dtype = graph.dtype(node.inputs[0]);
  return dtype == DType::kF32 || dtype == DType::kBF16;
}

std::unique_ptr<Kernel> make_rotary_kernel(const Graph& graph, const Node& node) {
  if (graph.dtype(node.inputs[0]) == DType::kF32) return std::make_unique<RotaryKernel<float>>(graph, node);
  return std::make_unique<RotaryKernel<Bf16>>(graph, node);
}

std::unique_ptr<Kernel> make_rotary_grad_kernel(const Graph& graph, const Node& node) {
  if (graph.dtype(node.inputs[0]) == DType::kF32) return std::make_unique<RotaryGradKernel<float>>(graph, node);
  return std::make_unique<RotaryGradKernel<Bf16>>(graph, node);
}

}  // namespace tokamak::cpu
