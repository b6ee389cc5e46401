#include "ops/matmul_form.h"

#include "base/error.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_dims.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/row_block.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace tokamak {
namespace {

std::vector<int64_t> all_but_last(const Shape& shape) {
  std::vector<int64_t> dims(shape.empty() ? 0 : shape.size() - 1);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

// Reads a body node by node; `current_` is what has become of the product so far.
class Reader {
 public:
  explicit Reader(const Node& group) : body_(*group.body) {
    for (const Node& node : body_.nodes())
      if (node.op->fusion != Fusion::kView) nodes_.push_back(&node);
  }

  MatmulForm read() {
    read_prologue();
    read_product();
    size_t end = nodes_.size();
    if (nodes_.back()->op == &op::reduce_sum) end -= ends_in_widened_sum() ? 2 : 1;
    size_t sums = end;
    end = take_narrowing(end);
    size_t at = take_bias(1, end) ? 2 : 1;
    if (at == 1 && (end - at == 1 || end - at == 2)) at = take_accumulation(at, end);
    if (at < end) read_function(at, end);
    if (narrow_ != kNoValue && !form_.function) refuse(*nodes_[sums - 1]);
    if (sums < nodes_.size()) read_sums();
    read_results();
    return std::move(form_);
  }

 private:
  [[noreturn]] static void refuse(const Node& node) {
    internal_error(__FILE__, __LINE__, "fused_matmul", fmt::format("a matmul cannot take '{}' here", node.op->name));
  }

  void read_prologue() {
    if (nodes_.empty() || nodes_[0]->op != &op::row) return;
    before_product_ = nodes_[0];
    nodes_.erase(nodes_.begin());
  }

  void read_product() {
    TOKAMAK_CHECK(!nodes_.empty() && nodes_[0]->op == &op::matmul, "a fused_matmul without a matmul");
    const Node& node = *nodes_[0];
    form_ = plain_form(body_, node);
    form_.a = argument(node.inputs[0]);
    form_.b = argument(node.inputs[1]);
    if (form_.scale_a >= 0) {
      form_.scale_a = argument(node.inputs[2]);
      form_.scale_b = argument(node.inputs[3]);
      if (form_.scale_a < 0 || form_.scale_b < 0) refuse(node);
    }
    if (before_product_) form_.prologue = prologue_for(node);
    if ((form_.a < 0) != form_.prologue.has_value() || form_.b < 0) refuse(node);
    product_ = current_ = node.outputs[0];
  }

  MatmulPrologue prologue_for(const Node& product) const {
    MatmulPrologue prologue{read_group(*before_product_), {}, {}};
    for (ValueId input : before_product_->inputs) prologue.inputs.push_back(argument(input));
    for (ValueId made : before_product_->outputs) {
      prologue.outputs.push_back(result_of(made));
      bool is_a = made == origin(product.inputs[0]);
      if (is_a != (prologue.outputs.back() < 0)) refuse(*before_product_);
    }
    return prologue;
  }

  int result_of(ValueId value) const {
    const std::vector<Result>& results = body_.results();
    auto found = std::find_if(results.begin(), results.end(), [&](const Result& r) { return r.value == value; });
    return found == results.end() ? -1 : int(found - results.begin());
  }

  // The operand of an add with the current value that comes from outside; kNoValue when there is none.
  ValueId added(const Node& node, ValueId current) const {
    if (node.op != &op::add || !is_full(node.outputs[0])) return kNoValue;
    for (size_t side : {0u, 1u})
      if (origin(node.inputs[side]) == origin(current) && argument(node.inputs[1 - side]) >= 0)
        return node.inputs[1 - side];
    return kNoValue;
  }

  // A cast to f32, a product with a number and a cast to eight bits at the end. Returns where they begin.
  size_t take_narrowing(size_t end) {
    if (end < 4 || nodes_[end - 1]->op != &op::cast || !is_float8(body_.dtype(nodes_[end - 1]->outputs[0]))) return end;
    const Node &wide = *nodes_[end - 3], &scaled = *nodes_[end - 2], &last = *nodes_[end - 1];
    bool chain = wide.op == &op::cast && scaled.op == &op::mul && origin(scaled.inputs[0]) == wide.outputs[0] &&
                 origin(last.inputs[0]) == scaled.outputs[0];
    form_.narrow_scale = chain ? argument(scaled.inputs[1]) : -1;
    if (form_.narrow_scale < 0 || num_elements(body_.shape(scaled.inputs[1])) != 1) refuse(last);
    form_.narrow = body_.dtype(last.outputs[0]);
    narrow_ = last.outputs[0];
    return end - 3;
  }

  bool take_bias(size_t at, size_t end) {
    if (at >= end) return false;
    const Node& node = *nodes_[at];
    ValueId bias = added(node, current_);
    if (bias == kNoValue || body_.dtype(bias) != body_.dtype(node.outputs[0])) return false;
    const Shape &shape = body_.shape(bias), &sum = body_.shape(node.outputs[0]);
    bool vector =
        num_elements(shape) == form_.n && (form_.n == 1 || (shape.back() == form_.n && sum.back() == form_.n));
    // Of one row it may be both; a matrix may be overwritten.
    if (!vector || body_.type(body_.arguments()[size_t(argument(bias))].value) == body_.type(node.outputs[0]))
      return false;
    form_.bias = argument(bias);
    become(node);
    return true;
  }

  // A product in f32, one that is added to a matrix, or both. Returns what comes next.
  size_t take_accumulation(size_t at, size_t end) {
    const Node& last = *nodes_[end - 1];
    bool widens = widens_product(*nodes_[at]);
    if (end - at == 2 && !widens) return at;
    ValueId product = widens ? nodes_[at]->outputs[0] : product_;
    ValueId matrix = added(last, product);
    bool accumulates = matrix != kNoValue && is_full(matrix) && body_.dtype(matrix) == body_.dtype(last.outputs[0]);
    if (!accumulates && (end - at == 2 || !widens)) return at;
    if (accumulates) form_.addend = argument(matrix);
    become(last);
    return end;
  }

  bool widens_product(const Node& node) const {
    return node.op == &op::cast && is_current(node.inputs[0]) && body_.dtype(node.outputs[0]) == DType::kF32;
  }

  void become(const Node& node) {
    current_ = node.outputs[0];
    form_.output = body_.dtype(current_);
  }

  void read_function(size_t at, size_t end) {
    GroupBody f{&op::flat, form_.batch * form_.m, form_.n, {}, {}};
    before_ = current_;
    values_[origin(current_)] = f.add(full_value(f, 0, form_.output));
    for (; at < end; ++at) {
      const Node& node = *nodes_[at];
      if (node.op != &op::constant && (!is_scalar_op(*node.op) || !is_full(node.outputs[0]))) refuse(node);
      GroupValue value;
      value.op = node.op;
      for (const auto& [name, attr] : node.attrs)
        if (name != "shape") value.attrs.set(name, attr);
      for (ValueId input : node.inputs) value.operands.push_back(operand(f, node, input));
      value.dtype = body_.dtype(node.outputs[0]);
      value.along_rows = node.op != &op::constant && f.rows > 1;
      value.along_cols = node.op != &op::constant && f.cols > 1;
      values_[node.outputs[0]] = f.add(std::move(value));
      current_ = node.outputs[0];
    }
    f.results = {{values_.at(current_), 0, {body_.dtype(current_), {f.rows, f.cols}}}};
    form_.function = std::move(f);
  }

  static GroupValue full_value(const GroupBody& f, ValueId outer, DType dtype) {
    GroupValue value;
    value.dtype = dtype;
    value.along_rows = f.rows > 1;
    value.along_cols = f.cols > 1;
    value.outer = outer;
    return value;
  }

  int operand(GroupBody& f, const Node& node, ValueId input) {
    if (auto known = values_.find(origin(input)); known != values_.end()) return known->second;
    int index = argument(input);
    bool fits = index >= 0 && is_full(input) && body_.dtype(input) == form_.output &&
                (form_.operand < 0 || form_.operand == index);
    if (!fits) refuse(node);
    form_.operand = index;
    return values_[origin(input)] = f.add(full_value(f, 1, form_.output));
  }

  bool ends_in_widened_sum() const {
    const Node& before = *nodes_[nodes_.size() - 2];
    return nodes_.size() > 2 && before.op == &op::cast && body_.dtype(before.outputs[0]) == DType::kF32 &&
           origin(nodes_.back()->inputs[0]) == before.outputs[0];
  }

  void read_sums() {
    const Node& node = *nodes_.back();
    const Shape& shape = body_.shape(node.inputs[0]);
    ValueId summed = origin(node.inputs[0]);
    if (ends_in_widened_sum()) summed = origin(nodes_[nodes_.size() - 2]->inputs[0]);
    if (!form_.function || summed != origin(current_) || shape.empty() || shape.back() != form_.n ||
        body_.dtype(node.inputs[0]) != DType::kF32 || node.attrs.get_ints("dims") != all_but_last(shape))
      refuse(node);
    sums_ = node.outputs[0];
  }

  void read_results() {
    form_.y = -1;
    int found = 0;
    for (size_t i = 0; i < body_.results().size(); ++i) {
      ValueId from = origin(body_.results()[i].value);
      if (is_of_prologue(int(i))) {
        ++found;
        continue;
      }
      if (from == (narrow_ == kNoValue ? origin(current_) : narrow_))
        form_.y = int(i);
      else if (form_.function && from == origin(before_))
        form_.argument = int(i);
      else
        TOKAMAK_CHECK(from == sums_, "a matmul's result is not of its form");
      if (from == sums_) {
        form_.sums = int(i);
        form_.sums_shape = body_.shape(body_.results()[i].value);
      }
    }
    found += (form_.y >= 0) + (form_.argument >= 0) + (form_.sums >= 0);
    TOKAMAK_CHECK(form_.y >= 0 && found == int(body_.results().size()) && (sums_ == kNoValue || form_.sums >= 0),
                  "the results of a matmul are not those of its form");
  }

  bool is_of_prologue(int result) const {
    if (!form_.prologue) return false;
    const std::vector<int>& outputs = form_.prologue->outputs;
    return std::find(outputs.begin(), outputs.end(), result) != outputs.end();
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
  bool is_current(ValueId value) const { return origin(value) == origin(current_); }
  bool is_full(ValueId value) const { return num_elements(body_.shape(value)) == num_elements(body_.shape(product_)); }

  const Graph& body_;
  std::vector<const Node*> nodes_;        // but for reshapes, from the product on
  const Node* before_product_ = nullptr;  // the prologue
  MatmulForm form_;
  ValueId product_ = kNoValue, current_ = kNoValue, before_ = kNoValue, sums_ = kNoValue, narrow_ = kNoValue;
  std::map<ValueId, int> values_;  // of the body -> of the function
};

ValueId apply(GraphBuilder& g, const GroupBody& function, ValueId argument, ValueId operand) {
  ValueIds made;
  for (const GroupValue& value : function.values) {
    if (value.is_input()) {
      made.push_back(value.outer == 0 ? argument : operand);
      continue;
    }
    ValueIds operands;
    for (int index : value.operands) operands.push_back(made[size_t(index)]);
    Attrs attrs = value.attrs;
    if (value.is(op::constant)) attrs.set("shape", Shape{});
    made.push_back(g.add1(*value.op, std::move(operands), std::move(attrs)));
  }
  return made[size_t(function.results[0].value)];
}

size_t num_results(const MatmulForm& form) {
  size_t count = size_t(1 + (form.argument >= 0) + (form.sums >= 0));
  return form.prologue ? count + form.prologue->outputs.size() - 1 : count;
}

// Returns a; what else it makes goes to its place among the results.
ValueId append_prologue(GraphBuilder& g, const MatmulPrologue& prologue, const ValueIds& in, ValueIds& results) {
  ValueIds inputs;
  ValueTypes types;
  for (ValueId argument : prologue.rows.inputs()) {
    inputs.push_back(in[size_t(prologue.inputs[size_t(argument)])]);
    types.push_back(g.type(inputs.back()));
  }
  ValueIds made = g.add(op::row, inputs, {}, make_body(prologue.rows, types));
  ValueId a = kNoValue;
  for (size_t i = 0; i < made.size(); ++i) {
    int output = prologue.outputs[i];
    (output < 0 ? a : results[size_t(output)]) = made[i];
  }
  return a;
}

}  // namespace

bool is_scalar_op(const OpDef& op) {
  return op.fusion == Fusion::kPointwise && op.in_place && (!op.scalar.empty() || &op == &op::cast);
}

bool MatmulForm::applies(const OpDef& op) const {
  if (!function || !function->values[size_t(function->results[0].value)].is(op) || function->num_nodes() != 1)
    return false;
  ValueIds read;
  for (int index : function->values[size_t(function->results[0].value)].operands)
    read.push_back(function->values[size_t(index)].outer);
  return read == (operand < 0 ? ValueIds{0} : ValueIds{1, 0});
}

MatmulForm plain_form(const Graph& graph, const Node& node) {
  NodeSpec spec = spec_of(graph, node);
  MatmulDims d = matmul_dims(spec);
  MatmulForm form;
  if (node.inputs.size() > 2) form.scale_a = 2, form.scale_b = 3;
  form.trans_a = node.attrs.get_bool("trans_a");
  form.trans_b = node.attrs.get_bool("trans_b");
  form.formats = matmul_formats(spec);
  form.output = form.formats.result;
  form.batch = d.batch;
  form.m = d.m;
  form.n = d.n;
  form.k = d.k;
  return form;
}

MatmulForm read_matmul(const Graph& graph, const Node& node) {
  if (node.op == &op::row_block) return read_matmul(*node.body, node.body->nodes()[0]);
  return node.body ? Reader(node).read() : plain_form(graph, node);
}

std::shared_ptr<const Graph> make_body(const MatmulForm& form, const ValueTypes& input_types) {
  auto body = std::make_shared<Graph>("body");
  GraphBuilder g(*body);
  ValueIds in;
  for (size_t i = 0; i < input_types.size(); ++i) in.push_back(g.input("a" + std::to_string(i), input_types[i]));
  auto input = [&](int position) { return in[size_t(position)]; };
  Attrs attrs{{"trans_a", form.trans_a}, {"trans_b", form.trans_b}};
  set_formats(attrs, form.formats);
  ValueIds results(num_results(form));
  ValueId a = form.prologue ? append_prologue(g, *form.prologue, in, results) : input(form.a);
  ValueIds operands{a, input(form.b)};
  if (form.scale_a >= 0) operands.insert(operands.end(), {input(form.scale_a), input(form.scale_b)});
  ValueId y = g.add1(op::matmul, std::move(operands), std::move(attrs));
  if (form.bias >= 0) y = add(g, y, input(form.bias));
  if (!form.function) y = cast(g, y, form.output);
  if (form.addend >= 0) y = add(g, input(form.addend), y);
  ValueId argument = y;
  if (form.function) y = apply(g, *form.function, argument, form.operand < 0 ? kNoValue : input(form.operand));
  results[size_t(form.y)] = y;
  if (form.narrow_scale >= 0)
    results[size_t(form.y)] = cast(g, mul(g, cast(g, y, DType::kF32), input(form.narrow_scale)), form.narrow);
  if (form.argument >= 0) results[size_t(form.argument)] = argument;
  if (form.sums >= 0) {
    ValueId sums = reduce_sum(g, cast(g, y, DType::kF32), all_but_last(g.shape(y)), true);
    results[size_t(form.sums)] = reshape(g, sums, form.sums_shape);
  }
  for (size_t i = 0; i < results.size(); ++i) body->add_result("r" + std::to_string(i), results[i]);
  return body;
}

}  // namespace tokamak
