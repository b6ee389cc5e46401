#include "profile/tensor_cores.h"

#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/row_block.h"
#include "ops/work_class.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

// Rows of 16-bit operands of so many elements are read in 16-byte pieces.
constexpr int64_t kAligned = 8;

// Sizes along which a matrix lies in memory, that keep tensor cores from being fed well.
std::string misaligned_dims(const MatmulForm& form) {
  std::string text;
  auto check = [&](const char* name, int64_t size) {
    if (size % kAligned) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, size);
  };
  check("m", form.trans_a ? form.m : kAligned);  // else m counts rows alone
  check("n", form.n);
  check("k", form.k);
  return text;
}

}  // namespace

std::string tensor_core_use(const Graph& graph, const Node& node) {
  WorkClass work = work_class(node);
  if (work != WorkClass::kMatmul && work != WorkClass::kAttention) return "";
  bool is_product = node.op == &op::matmul || node.op == &op::fused_matmul || node.op == &op::row_block;
  bool low = dtype_bytes(graph.dtype(node.inputs[0])) == 2;
  if (!is_product) return low ? "yes" : "no: f32 operands";
  MatmulForm form = read_matmul(graph, node);
  for (NumberFormat format : {form.formats.a, form.formats.b})
    if (format == NumberFormat::kF32) return "no: f32 operands";
  std::string misaligned = misaligned_dims(form);
  return misaligned.empty() ? "yes" : fmt::format("yes, but {} is no multiple of {}", misaligned, kAligned);
}

}  // namespace tokamak
