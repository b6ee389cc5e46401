// The text of the function that adds subtrees of slots: the order is known when it is made, so it is written out.
#include "backend/cuda/device_types.h"
#include "backend/cuda/nccl.h"

#include <fmt/core.h>

#include <iterator>

namespace tokamak::cuda {

std::string tree_sum_source(DType dtype, std::span<const TreePiece> pieces) {
  std::vector<std::string> stack;  // names
  std::string text;
  auto to = std::back_inserter(text);
  int values = 0;
  fold_tree(
      pieces,
      [&](size_t i) {
        stack.push_back(fmt::format("v{}", values++));
        fmt::format_to(to, "    const Number {} = load(pieces.at[{}][i]);\n", stack.back(), i);
      },
      [&] {
        std::string upper = stack.back();
        stack.pop_back();
        std::string sum = fmt::format("v{}", values++);
        fmt::format_to(to, "    const Number {} = stored({} + {});\n", sum, stack.back(), upper);
        stack.back() = sum;
      });
  return fmt::format(
      "#include \"backend/cuda/kernels/storage.cuh\"\nusing T = {};\nconstexpr int kPieces = {};\n"
      "#include \"backend/cuda/kernels/tree_sum.cuh\"\n"
      "extern \"C\" __global__ void tree_sum(Pieces pieces, T* to, int64_t count) {{\n  tokamak::begin_kernel();\n"
      "  for (int64_t i = first_element(); i < count; i += elements_apart()) {{\n{}    store({}, to[i]);\n  }}\n}}\n",
      device_type(dtype), pieces.size(), text, stack[0]);
}

}  // namespace tokamak::cuda
