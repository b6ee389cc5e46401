// The text of the functions that add what ranks have: the order is known when it is made, so it is written out.
#include "backend/cuda/device_types.h"
#include "backend/cuda/nccl.h"

#include <fmt/core.h>

#include <iterator>

namespace tokamak::cuda {
namespace {

std::string source(DType dtype, size_t pieces, const std::string& sum) {
  return fmt::format(
      "#include \"backend/cuda/kernels/storage.cuh\"\nusing T = {};\nconstexpr int kPieces = {}, kSums = {};\n"
      "#include \"backend/cuda/kernels/rank_sum.cuh\"\n"
      "__device__ inline Number sum_of(const Number (&x)[kPieces]) {{\n{}}}\n"
      "extern \"C\" __global__ void rank_sum(const __grid_constant__ Sums sums) {{\n"
      "  tokamak::begin_kernel();\n  add_sums(sums);\n}}\n",
      device_type(dtype), pieces, sums_at_once(pieces), sum);
}

}  // namespace

// As many as an older driver's 4 KiB of arguments hold.
int sums_at_once(size_t pieces) { return pieces <= 8 ? 32 : pieces <= 16 ? 24 : 1; }

std::string tree_sum_source(DType dtype, std::span<const TreePiece> pieces) {
  std::vector<std::string> stack;  // names
  std::string text;
  auto to = std::back_inserter(text);
  int sums = 0;
  fold_tree(
      pieces, [&](size_t i) { stack.push_back(fmt::format("x[{}]", i)); },
      [&] {
        std::string upper = stack.back();
        stack.pop_back();
        std::string sum = fmt::format("sum{}", sums++);
        fmt::format_to(to, "  const Number {} = stored({} + {});\n", sum, stack.back(), upper);
        stack.back() = sum;
      });
  return source(dtype, pieces.size(), text + fmt::format("  return {};\n", stack[0]));
}

std::string rank_sum_source(DType dtype, int ranks) {
  std::string text = "  return x[0]";
  for (int rank = 1; rank < ranks; ++rank) text += fmt::format(" + x[{}]", rank);
  return source(dtype, size_t(ranks), text + ";\n");
}

}  // namespace tokamak::cuda
