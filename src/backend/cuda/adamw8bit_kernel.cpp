// adamw8bit: AdamW with moments of 8 bits, one launch for each tensor.
#include "backend/cuda/adamw8bit_kernel.h"

#include "backend/cuda/device_types.h"
#include "backend/cuda/kernels.h"
#include "base/divide.h"
#include "ops/dynamic_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256;  // as kernels/adamw8bit.cu
constexpr int64_t kWarps = 8;  // of a thread block, each with a block of a row
constexpr int64_t kMostBlocks =
    4096;  // of threads: several times what a GPU runs at once, so that tables are read once

std::string table(std::span<const float> numbers) {
  std::string text = "{";
  for (float number : numbers) text += fmt::format("{:.9e}f,", number);
  return text + "}";
}

class Adamw8bitKernel : public Kernel {
 public:
  Adamw8bitKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), blocks_(num_elements(graph.shape(node.inputs[3]))),
        function_(context.compiler->add("adamw8bit", adamw8bit_source(graph, node))) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    auto grid = unsigned(std::min(ceil_div(blocks_, kWarps), kMostBlocks));
    function_->launch(context_.queue(), {dim3(grid), dim3(kThreads), 0}, in[0], in[1], in[2], in[3], in[4], in[5],
                      in[6], in[7], in[8], out[0], out[1], out[2], out[3], out[4], blocks_);
  }

 private:
  Context& context_;
  int64_t blocks_;
  std::shared_ptr<DeviceFunction> function_;
};

}  // namespace

std::string adamw8bit_source(const Graph& graph, const Node& node) {
  std::string text = "#include \"backend/cuda/kernels/storage.cuh\"\n";
  text += fmt::format("using Grad = {};\nconstexpr int kLength = {};\n", device_type(graph.dtype(node.inputs[1])),
                      graph.shape(node.inputs[2]).back());
  for (int moment : {1, 2}) {
    double beta = node.attrs.get_double(fmt::format("beta{}", moment));
    text += fmt::format("constexpr float kBeta{0} = {1:.9e}f, kNew{0} = {2:.9e}f, kLogBeta{0} = {3:.9e}f;\n", moment,
                        beta, 1 - beta, std::max(std::log(beta), -1e30));
  }
  text += fmt::format("constexpr float kEps = {:.9e}f, kDecay = {:.9e}f;\n", node.attrs.get_double("eps"),
                      node.attrs.get_double("decay"));
  const DynamicMap of_m(true), of_v(false);
  text +=
      fmt::format("__device__ const float kValues[2][256] = {{{}, {}}};\n", table(of_m.values()), table(of_v.values()));
  text += fmt::format("__device__ const float kMidpoints[2][255] = {{{}, {}}};\n", table(of_m.midpoints()),
                      table(of_v.midpoints()));
  return text + "#include \"backend/cuda/kernels/adamw8bit.cu\"\n";
}

KernelPtr make_adamw8bit_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<Adamw8bitKernel>(context, graph, node);
}

}  // namespace tokamak::cuda
