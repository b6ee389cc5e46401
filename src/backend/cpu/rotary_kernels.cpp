// rotary_qkv and its gradient: rows in parallel; the angles of a row are turned into cosines and sines once for all
// heads. Sums are f32, in the order of the heads.
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
      : d_(rotary_dims(spec_of(graph, node))), frequencies_(rotary_frequencies(node.attrs)) {}

  void run(Inputs in, Outputs out) override {
    int64_t width = d_.H * d_.D;
    parallel_for(d_.B * d_.T, kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
      Turns turns{d_, frequencies_};
      for (int64_t row = begin; row < end; ++row) {
        turns.load(static_cast<const int32_t*>(in[3]), row);
        for (int64_t h = 0; h < d_.H; ++h) {
          int64_t kv = (row * d_.K + h / d_.group()) * d_.D;
          T* to = static_cast<T*>(out[0]) + row * 3 * width + h * d_.D;
          turn_head(turns, static_cast<const T*>(in[0]) + row * width + h * d_.D, to);
          turn_head(turns, static_cast<const T*>(in[1]) + kv, to + width);
          std::copy_n(static_cast<const T*>(in[2]) + kv, d_.D, to + 2 * width);
        }
      }
    });
  }

 private:
  RotaryDims d_;
  std::vector<float> frequencies_;
};

template <typename T>
class RotaryGradKernel : public Kernel {
 public:
  RotaryGradKernel(const Graph& graph, const Node& node)
      : d_(rotary_dims(spec_of(graph, node))), frequencies_(rotary_frequencies(node.attrs)) {}

  void run(Inputs in, Outputs out) override {
    const auto* dqkv = static_cast<const T*>(in[0]);
    int64_t D = d_.D, width = d_.H * D;
    parallel_for(d_.B * d_.T, kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
      Turns turns{d_, frequencies_};
      std::vector<float> sum(static_cast<size_t>(D));
      auto put = [&](void* tensor, int64_t head) {
        for (int64_t i = 0; i < D; ++i) static_cast<T*>(tensor)[head * D + i] = from_float<T>(sum[size_t(i)]);
        std::fill(sum.begin(), sum.end(), 0.0f);
      };
      for (int64_t row = begin; row < end; ++row) {
        turns.load(static_cast<const int32_t*>(in[1]), row);
        const T* from = dqkv + row * 3 * width;
        for (int64_t h = 0; h < d_.H; ++h) {
          add_back(turns, from + h * D, sum.data());
          put(out[0], row * d_.H + h);
        }
        for (int64_t k = 0; k < d_.K; ++k) {
          const T* group = from + width + k * d_.group() * D;
          for (int64_t h = 0; h < d_.group(); ++h) add_back(turns, group + h * D, sum.data());
          put(out[1], row * d_.K + k);
          for (int64_t h = 0; h < d_.group(); ++h)
            for (int64_t i = 0; i < D; ++i) sum[size_t(i)] += to_float(group[width + h * D + i]);
          put(out[2], row * d_.K + k);
        }
      }
    });
  }

 private:
  RotaryDims d_;
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
