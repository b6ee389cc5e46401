#include "backend/cuda/matmul_problem.h"

#include "base/error.h"
#include "graph/op_def.h"
#include "ops/matmul.h"
#include "ops/matmul_dims.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <numeric>
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
  }
  return "";
}

MatmulProblem problem_of(const Graph& graph, const Node& node) {
  MatmulDims d = matmul_dims(spec_of(graph, node));
  MatmulProblem p;
  p.input = graph.dtype(node.inputs[0]);
  p.output = graph.dtype(node.outputs[0]);
  TOKAMAK_CHECK(is_float(p.input), "a matmul of {}", dtype_name(p.input));
  p.batch = d.batch;
  p.m = d.m;
  p.n = d.n;
  p.k = d.k;
  p.trans_a = node.attrs.get_bool("trans_a");
  p.trans_b = node.attrs.get_bool("trans_b");
  p.tf32 = p.input == DType::kF32 && node.has_tag("tf32");
  return p;
}

// Reads a body node by node; `current_` is what has become of the product so far.
class GroupReader {
 public:
  explicit GroupReader(const Node& group) : group_(group), body_(*group.body) {}

  MatmulNode read() {
    for (const Node& node : body_.nodes())
      if (node.op->fusion != Fusion::kView) take(node);
    TOKAMAK_CHECK(current_ != kNoValue, "a fused_matmul without a matmul");
    read_results();
    return out_;
  }

 private:
  void take(const Node& node) {
    bool taken = false;
    if (node.op == &op::matmul)
      taken = take_matmul(node);
    else if (node.op == &op::add)
      taken = take_add(node);
    else if (node.op == &op::gelu)
      taken = take_gelu(node);
    else if (node.op == &op::gelu_grad)
      taken = take_gelu_grad(node);
    else if (node.op == &op::cast)
      taken = take_cast(node);
    else if (node.op == &op::reduce_sum)
      taken = take_sums(node);
    TOKAMAK_CHECK(taken, "the GPU's matmul cannot take '{}' here", node.op->name);
    current_ = node.outputs[0];
  }

  bool take_matmul(const Node& node) {
    if (current_ != kNoValue) return false;
    out_.problem = problem_of(body_, node);
    if (out_.problem.input == DType::kF32 && group_.has_tag("tf32")) out_.problem.tf32 = true;
    out_.a = argument(node.inputs[0]);
    out_.b = argument(node.inputs[1]);
    product_ = node.outputs[0];
    return out_.a >= 0 && out_.b >= 0;
  }

  bool take_add(const Node& node) {
    int side = is_current(node.inputs[0]) ? 0 : 1;
    ValueId other = node.inputs[size_t(1 - side)];
    int index = argument(other);
    if (!is_current(node.inputs[size_t(side)]) || index < 0 || !plain_epilogue()) return false;
    out_.problem.output = body_.dtype(node.outputs[0]);  // an f32 operand makes the sum f32, as a cast would
    if (is_bias(node, other)) {
      out_.problem.epilogue = MatmulEpilogue::kBias;
      out_.bias = index;
      return true;
    }
    if (!is_full(other) || !is_full(node.outputs[0]) || body_.dtype(other) != out_.problem.output) return false;
    out_.problem.accumulate = true;
    out_.addend = index;
    return true;
  }

  bool take_gelu(const Node& node) {
    if (!is_current(node.inputs[0]) || out_.problem.epilogue != MatmulEpilogue::kBias) return false;
    out_.problem.epilogue = MatmulEpilogue::kBiasGelu;
    under_gelu_ = origin(current_);
    return true;
  }

  bool take_gelu_grad(const Node& node) {
    int pre = argument(node.inputs[0]);
    bool fits = pre >= 0 && is_current(node.inputs[1]) && is_full(node.inputs[0]) && is_full(node.outputs[0]) &&
                origin(current_) == product_ && body_.dtype(node.inputs[0]) == out_.problem.output;
    if (!fits || !plain_epilogue()) return false;
    out_.problem.epilogue = MatmulEpilogue::kGeluGrad;
    out_.aux_input = pre;
    gradient_ = origin(node.outputs[0]);
    return true;
  }

  // Of the gradient, or of what a cast to f32 made of it.
  bool take_sums(const Node& node) {
    const Shape& shape = body_.shape(node.inputs[0]);
    std::vector<int64_t> all_but_last(shape.empty() ? 0 : shape.size() - 1);
    std::iota(all_but_last.begin(), all_but_last.end(), 0);
    bool fits = out_.problem.epilogue == MatmulEpilogue::kGeluGrad && is_current(node.inputs[0]);
    if (!fits || shape.empty() || shape.back() != out_.problem.n || node.attrs.get_ints("dims") != all_but_last)
      return false;
    out_.problem.epilogue = MatmulEpilogue::kGeluGradSums;
    return true;
  }

  bool take_cast(const Node& node) {
    if (!is_current(node.inputs[0]) || body_.dtype(node.outputs[0]) != DType::kF32) return false;
    if (origin(current_) == gradient_) return true;  // to be summed
    if (origin(current_) != product_ || !plain_epilogue()) return false;
    out_.problem.output = DType::kF32;
    return true;
  }

  void read_results() {
    const auto& results = body_.results();
    auto is = [&](size_t i, ValueId value) { return origin(results[i].value) == origin(value); };
    if (out_.problem.epilogue == MatmulEpilogue::kBiasGelu && results.size() == 2 && is(0, under_gelu_) &&
        is(1, current_)) {
      out_.problem.epilogue = MatmulEpilogue::kBiasGeluAux;
      out_.aux_output = 0;
      out_.output = 1;
      return;
    }
    if (out_.problem.epilogue == MatmulEpilogue::kGeluGradSums) {
      TOKAMAK_CHECK(results.size() == 2 && is(0, gradient_) && is(1, current_),
                    "a matmul with sums of a gradient has other results than both");
      out_.sums_output = 1;
      return;
    }
    TOKAMAK_CHECK(results.size() == 1 && is(0, current_), "the results of the GPU's matmul are those of '{}'",
                  body_.nodes().back().op->name);
    TOKAMAK_CHECK(body_.dtype(results[0].value) == out_.problem.output, "a matmul's result of type {}",
                  to_string(body_.type(results[0].value)));
    if (out_.problem.epilogue == MatmulEpilogue::kBias && out_.problem.batch * out_.problem.m == 1) bias_to_addend();
  }

  // To a product of one row a vector is both; but only an addend may lie where the result does.
  void bias_to_addend() {
    out_.problem.epilogue = MatmulEpilogue::kNone;
    out_.problem.accumulate = true;
    out_.addend = std::exchange(out_.bias, -1);
  }

  // The value that reshapes made this of.
  ValueId origin(ValueId value) const {
    while (body_.producer(value) >= 0) {
      const Node& node = body_.nodes()[size_t(body_.producer(value))];
      if (node.op->fusion != Fusion::kView) break;
      value = node.inputs[0];
    }
    return value;
  }
  int argument(ValueId value) const {
    value = origin(value);
    for (size_t i = 0; i < body_.arguments().size(); ++i)
      if (body_.arguments()[i].value == value) return int(i);
    return -1;
  }
  bool is_current(ValueId value) const { return current_ != kNoValue && origin(value) == origin(current_); }
  bool plain_epilogue() const { return out_.problem.epilogue == MatmulEpilogue::kNone && !out_.problem.accumulate; }
  bool is_full(ValueId value) const { return num_elements(body_.shape(value)) == num_elements(body_.shape(product_)); }
  // The library wants a bias of the output's type.
  bool is_bias(const Node& add, ValueId value) const {
    const MatmulProblem& p = out_.problem;
    const Shape& sum = body_.shape(add.outputs[0]);
    bool along_columns = num_elements(body_.shape(value)) == p.n && (p.n == 1 || body_.shape(value).back() == p.n);
    bool same_columns = p.n == 1 || (!sum.empty() && sum.back() == p.n);
    return along_columns && same_columns && num_elements(sum) == p.batch * p.m * p.n && body_.dtype(value) == p.output;
  }

  const Node& group_;
  const Graph& body_;
  MatmulNode out_;
  ValueId product_ = kNoValue, current_ = kNoValue, under_gelu_ = kNoValue, gradient_ = kNoValue;
};

}  // namespace

std::string MatmulProblem::key() const {
  std::string types(dtype_name(input));
  if (tf32) types = "tf32";
  if (output != input) types += fmt::format(">{}", dtype_name(output));
  std::string count = batch > 1 ? fmt::format("{}*", batch) : std::string();
  return fmt::format("{} {}{}x{}x{} {}{}{}{}", types, count, m, n, k, trans_a ? 't' : 'n', trans_b ? 't' : 'n',
                     accumulate ? " +c" : "", suffix(epilogue));
}

MatmulNode read_matmul(const Graph& graph, const Node& node) {
  MatmulNode read;
  read.problem = problem_of(graph, node);
  return read;
}

MatmulNode read_matmul_group(const Node& group) { return GroupReader(group).read(); }

}  // namespace tokamak::cuda
