#include "backend/cuda/matmul_problem.h"

#include "ops/pointwise.h"

#include <fmt/core.h>

#include <utility>

namespace tokamak::cuda {
namespace {

std::string_view suffix(MatmulEpilogue epilogue) {
  switch (epilogue) {
    case MatmulEpilogue::kNone: return "";
    case MatmulEpilogue::kBias: return " +bias";
    case MatmulEpilogue::kBiasGelu: return " +bias+gelu";
    case MatmulEpilogue::kBiasGeluAux: return " +bias+gelu+aux";
    case MatmulEpilogue::kGeluGrad: return " +gelu_grad";
    case MatmulEpilogue::kGeluGradSums: return " +gelu_grad+sums";
    case MatmulEpilogue::kFunction: return " +function";
  }
  return "";
}

MatmulEpilogue epilogue_of(const MatmulForm& form) {
  if (form.narrow_scale >= 0) return MatmulEpilogue::kFunction;
  if (!form.function) return form.bias >= 0 ? MatmulEpilogue::kBias : MatmulEpilogue::kNone;
  if (form.bias >= 0 && form.applies(op::gelu) && form.sums < 0)
    return form.argument >= 0 ? MatmulEpilogue::kBiasGeluAux : MatmulEpilogue::kBiasGelu;
  if (form.bias < 0 && form.operand >= 0 && form.applies(op::gelu_grad) && form.argument < 0)
    return form.sums >= 0 ? MatmulEpilogue::kGeluGradSums : MatmulEpilogue::kGeluGrad;
  return MatmulEpilogue::kFunction;
}

}  // namespace

std::string MatmulProblem::key() const {
  std::string types(format_name(a));
  if (b != a) types += fmt::format("*{}", format_name(b));
  if (b != a || output != storage_of(a)) types += fmt::format(">{}", dtype_name(output));
  if (accumulator != DType::kF32) types += fmt::format("/{}", dtype_name(accumulator));
  if (scaled) types += " scaled";
  std::string count = batch > 1 ? fmt::format("{}*", batch) : std::string();
  return fmt::format("{} {}{}x{}x{} {}{}{}{}", types, count, m, n, k, trans_a ? 't' : 'n', trans_b ? 't' : 'n',
                     accumulate ? " +c" : "", suffix(epilogue));
}

namespace {

bool has_float8_formats(const MatmulProblem& p) {
  bool formats = is_float8(p.a) && is_float8(p.b) && (p.a == NumberFormat::kF8E4M3 || p.b == NumberFormat::kF8E4M3);
  bool sizes = p.batch == 1 && p.m % 16 == 0 && p.n % 16 == 0 && p.k % 16 == 0;
  return formats && sizes && p.scaled && !p.trans_a && p.trans_b && !p.accumulate && p.output == DType::kBF16 &&
         p.accumulator == DType::kF32;
}

}  // namespace

bool has_library_formats(const MatmulProblem& p) {
  if (has_float8_formats(p)) return true;
  bool has_output = p.output == storage_of(p.a) || p.output == DType::kF32;
  return p.a == p.b && !is_float8(p.a) && has_output && p.accumulator == DType::kF32 && !p.scaled;
}

MatmulNode matmul_node(const Graph& graph, const Node& node) {
  MatmulForm form = read_matmul(graph, node);
  // To a product of one row a vector is both; but only an addend may lie where the result does.
  if (form.bias >= 0 && !form.function && form.batch * form.m == 1) form.addend = std::exchange(form.bias, -1);
  MatmulProblem p;
  p.a = form.formats.a;
  p.b = form.formats.b;
  p.accumulator = form.formats.accumulator;
  p.scaled = form.scale_a >= 0;
  p.output = form.output;
  p.batch = form.batch;
  p.m = form.m;
  p.n = form.n;
  p.k = form.k;
  p.trans_a = form.trans_a;
  p.trans_b = form.trans_b;
  p.accumulate = form.addend >= 0;
  p.epilogue = epilogue_of(form);
  return {std::move(p), std::move(form)};
}

}  // namespace tokamak::cuda
