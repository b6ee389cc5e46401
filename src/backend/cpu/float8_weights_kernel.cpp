// float8_weights: the largest element of each weight, then blocks of sixteen rows of it.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "base/parallel.h"
#include "ops/float8_weights.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tokamak::cpu {
namespace {

constexpr int64_t kRows = 16;                        // of a block: what lies side by side once turned
constexpr float kLeast = 1e-30f, kLargest = 448.0f;  // as ops/float8_weights.cpp

// So many elements, rounded to bf16.
void load_rounded(DType dtype, const void* from, int64_t at, int64_t n, float* to) {
  load(dtype, from, at, n, to);
  if (dtype == DType::kBF16) return;
  std::vector<uint16_t> rounded(static_cast<size_t>(n));
  store(DType::kBF16, to, n, rounded.data(), 0);
  load(DType::kBF16, rounded.data(), 0, n, to);
}

// A weight, and where its copies go; null: nowhere.
struct Weight {
  DType dtype;
  int64_t rows, columns;
  const void* from;
  uint8_t *plain, *turned;

  float largest() const {
    std::vector<float> of_blocks(size_t(rows / kRows), 0.0f);
    for_blocks([&](int64_t block, const std::vector<float>& x) {
      for (float v : x) of_blocks[size_t(block)] = std::max(of_blocks[size_t(block)], std::fabs(v));
    });
    return *std::ranges::max_element(of_blocks);
  }

  // The sums of blocks are added up in order, on any number of threads the same.
  float longest_column() const {
    std::vector<double> squares(size_t(rows / kRows * columns), 0.0);
    for_blocks([&](int64_t block, const std::vector<float>& x) {
      for (size_t i = 0; i < x.size(); ++i)
        squares[size_t(block * columns) + i % size_t(columns)] += double(x[i]) * double(x[i]);
    });
    double most = 0;
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (size_t i = size_t(c); i < squares.size(); i += size_t(columns)) sum += squares[i];
      most = std::max(most, sum);
    }
    return float(std::sqrt(most));
  }

  void cast(float inverse) const {
    for_blocks([&](int64_t block, std::vector<float>& x) {
      for (float& v : x) v *= inverse;
      std::vector<uint8_t> made(x.size());
      store(DType::kF8E4M3, x.data(), int64_t(x.size()), made.data(), 0);
      if (plain) std::ranges::copy(made, plain + block * kRows * columns);
      for (int64_t c = 0; turned && c < columns; ++c)
        for (int64_t r = 0; r < kRows; ++r) turned[c * rows + block * kRows + r] = made[size_t(r * columns + c)];
    });
  }

 private:
  template <typename Work>
  void for_blocks(const Work& work) const {
    parallel_for(rows / kRows, 1, [&](int64_t begin, int64_t end, int) {
      std::vector<float> x(size_t(kRows * columns));
      for (int64_t block = begin; block < end; ++block) {
        load_rounded(dtype, from, block * kRows * columns, kRows * columns, x.data());
        work(block, x);
      }
    });
  }
};

class Float8WeightsKernel : public Kernel {
 public:
  Float8WeightsKernel(const Graph& graph, const Node& node) : stored_(stored_copies(node)) {
    for (ValueId input : node.inputs) types_.push_back(graph.type(input));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    auto next = out.begin();
    for (size_t i = 0; i < in.size(); ++i) {
      Weight weight{types_[i].dtype, types_[i].shape[0], types_[i].shape[1], in[i], nullptr, nullptr};
      if (stored_[i].plain) weight.plain = static_cast<uint8_t*>(*next++);
      if (stored_[i].turned) weight.turned = static_cast<uint8_t*>(*next++);
      float limit = std::max(weight.largest(), kLeast);
      weight.cast(kLargest / limit);
      *static_cast<float*>(*next++) = limit / kLargest;
      if (stored_[i].longest) *static_cast<float*>(*next++) = weight.longest_column();
    }
  }

 private:
  std::vector<StoredCopies> stored_;
  ValueTypes types_;
};

}  // namespace

std::unique_ptr<Kernel> make_float8_weights_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<Float8WeightsKernel>(graph, node);
}

}  // namespace tokamak::cpu
