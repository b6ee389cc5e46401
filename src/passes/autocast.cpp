#include "passes/autocast.h"

#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/first_rows.h"
#include "ops/generate.h"
#include "ops/interpret.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "passes/eliminate_dead_code.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tokamak {
namespace {

// Of one product; nothing: it keeps the types that the model gave it.
using ChosenFormats = std::optional<MatmulFormats>;

// By node. A model's own low types stay.
std::vector<ChosenFormats> choose_formats(const Graph& graph, const FormatPolicy& policy) {
  std::vector<ChosenFormats> formats(graph.nodes().size());
  std::vector<ProductUse> uses = find_product_uses(graph);
  for (size_t n = 0; n < formats.size(); ++n) {
    const Node& node = graph.nodes()[n];
    bool is_product = node.op->autocast == Autocast::kLow && graph.dtype(node.inputs[0]) == DType::kF32;
    if (is_product) formats[n] = policy({graph, node, uses[n]});
  }
  return formats;
}

// What the node's operand i is stored in: that of the format where the op takes a low one, else its own type.
DType operand_type(const Node& node, const ChosenFormats& formats, size_t i, DType own) {
  if (!formats || !is_float(own) || !(node.op->low_inputs >> i & 1)) return own;
  return storage_of(node.op == &op::matmul && i == 1 ? formats->b : formats->a);
}

Attrs attrs_with(const Node& node, const ChosenFormats& formats) {
  Attrs attrs = node.attrs;
  if (!formats) return attrs;
  if (node.op == &op::matmul)
    set_formats(attrs, *formats);
  else if (formats->a == NumberFormat::kTf32)
    attrs.set("tf32", true);
  return attrs;
}

class Caster {
 public:
  Caster(const Graph& graph, std::vector<ChosenFormats> formats, const CompileConfig& options)
      : graph_(graph), rewriter_(graph), formats_(std::move(formats)),
        low_(options.precision == Precision::kFp16 ? DType::kF16 : DType::kBF16),
        low_residual_(options.low_residual && is_low(options.precision)) {
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const Node& node = graph.nodes()[n];
      for (size_t i = 0; i < node.inputs.size() && formats_[n]; ++i)
        if (operand_type(node, formats_[n], i, graph.dtype(node.inputs[i])) == low_)
          low_operands_.insert(node.inputs[i]);
    }
    for (const Node& node : graph.nodes())
      if (node.op == &op::dropout && low_operands_.count(node.outputs[0])) low_operands_.insert(node.inputs[0]);
  }

  Graph run() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) convert(graph_.nodes()[n], formats_[n]);
    for (const Result& result : graph_.results()) restore(result.value);
    for (const Update& update : graph_.updates()) restore(update.value);
    return rewriter_.finish();
  }

 private:
  const ValueType& type(ValueId new_value) const { return rewriter_.graph().type(new_value); }

  // The value in this type; every value is cast at most once to each.
  ValueId as(GraphBuilder& g, ValueId value, DType dtype) {
    DType from = type(value).dtype;
    if (!is_float(from) || from == dtype) return value;
    ValueId& known = casts_.try_emplace({value, dtype}, kNoValue).first->second;
    if (known == kNoValue) known = make_cast(g, value, dtype);
    return known;
  }

  // Of a view, what it views is cast: forward and backward pass read one value with two shapes.
  ValueId make_cast(GraphBuilder& g, ValueId value, DType dtype) {
    int maker = rewriter_.graph().producer(value);
    if (maker < 0) return cast(g, value, dtype);
    const Node node = rewriter_.graph().nodes()[size_t(maker)];
    if (node.op == &op::reshape) return reshape(g, as(g, node.inputs[0], dtype), type(value).shape);
    if (node.op == &op::first_rows) return g.add1(op::first_rows, {as(g, node.inputs[0], dtype)}, node.attrs);
    return cast(g, value, dtype);
  }

  void convert(const Node& node, const ChosenFormats& formats) {
    ValueIds inputs = rewriter_.map(node.inputs);
    if (widens_residual(node)) return rewriter_.replace(node.outputs, inputs);
    GraphBuilder& g = rewriter_.in_place_of(node);
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = as(g, inputs[i], wanted(node, formats, inputs, i));
    if (follows_constants(g, node, inputs))
      for (ValueId& input : inputs) input = narrowed(g, input);
    if (node.op == &op::cast && type(inputs[0]).dtype == graph_.dtype(node.outputs[0]))
      rewriter_.replace(node.outputs, {inputs[0]});
    else
      rewriter_.replace(node.outputs,
                        stored(g, node, inputs, g.add(*node.op, inputs, attrs_with(node, formats), node.body)));
  }

  // The residual stream goes on in the low type in which another stage of a pipeline has given it.
  bool widens_residual(const Node& node) const {
    if (node.op != &op::cast || graph_.dtype(node.inputs[0]) != low_) return false;
    const Argument* argument = graph_.argument_of(node.inputs[0]);
    return argument && argument->spec.role == Role::kResidual;
  }

  // What embeddings give is where the residual stream begins; norms and their gradients follow what they read.
  // Probabilities that a matmul reads are kept once, for the gradient as well; so is what a product of the update makes
  // for the next one. Where a constant alone makes a result f32, that is rounded to the low type.
  ValueIds stored(GraphBuilder& g, const Node& node, const ValueIds& inputs, ValueIds outputs) {
    bool once = node.op == &op::softmax || (node.phase == Phase::kUpdate && node.op->fusion == Fusion::kPointwise);
    bool low = once && low_operands_.count(node.outputs[0]) ? true
               : node.op == &op::embedding                  ? low_residual_
                                                            : follows_constants(g, node, inputs);
    if (low) outputs[0] = as(g, outputs[0], low_);
    return outputs;
  }

  const Node* constant_of(GraphBuilder& g, ValueId value) const {
    int maker = g.graph().producer(value);
    const Node* node = maker < 0 ? nullptr : &g.graph().nodes()[size_t(maker)];
    return node && node->op == &op::constant ? node : nullptr;
  }

  // Whether the op reads low values and f32 constants, and nothing else: then the constants follow.
  bool follows_constants(GraphBuilder& g, const Node& node, const ValueIds& inputs) {
    if (node.op->fusion != Fusion::kPointwise) return false;
    bool met = false, constants = false;
    for (ValueId input : inputs) {
      bool low = type(input).dtype == low_;
      if (!low && !constant_of(g, input)) return false;
      (low ? met : constants) = true;
    }
    return met && constants;
  }

  // A constant that the low type holds exactly, in that type. (Another stays, so that no more is lost than by storing
  // the result.)
  ValueId narrowed(GraphBuilder& g, ValueId value) {
    const Node* node = constant_of(g, value);
    if (!node || type(value).dtype == low_) return value;
    double held = node->attrs.get_double("value");
    return round_to(low_, held) == held ? constant(g, held, Shape(type(value).shape), low_) : value;
  }

  DType wanted(const Node& node, const ChosenFormats& formats, const ValueIds& inputs, size_t i) {
    DType own = type(inputs[i]).dtype;
    if (!is_float(own)) return own;
    if (is_ordered(node.attrs)) return graph_.dtype(node.inputs[i]);
    switch (node.op->autocast) {
      case Autocast::kFull: return own;
      case Autocast::kLow: return operand_type(node, formats, i, own);
      case Autocast::kFollow: break;
    }
    // A table that a matmul reads as well is there in the low type already.
    if (node.op == &op::embedding) return low_residual_ && low_operands_.count(node.inputs[0]) ? low_ : own;
    return node.op->fusion == Fusion::kPointwise ? type_of_broadcast(node, inputs, i) : widest_type(inputs);
  }

  // Pointwise ops mix types by themselves, but a vector takes the type of the full-size operand that it is applied to,
  // and in a low residual stream so does every operand of lower rank (the embeddings of the positions).
  DType type_of_broadcast(const Node& node, const ValueIds& inputs, size_t i) {
    const ValueType own = type(inputs[i]);
    const Shape& shape = graph_.shape(node.outputs[0]);
    if (i == 0 && chooses_rows(node))
      return type(inputs[1]).dtype == low_ || type(inputs[2]).dtype == low_ ? low_ : own.dtype;
    size_t rank = own.shape.size();
    bool follows = rank == 1 || (low_residual_ && rank > 1 && rank < shape.size()) || is_comparison(node.inputs[i]);
    if (!follows || own.shape == shape) return own.dtype;
    for (ValueId input : inputs)
      if (type(input).shape == shape) return type(input).dtype;
    return own.dtype;
  }

  // Whether a value is what a comparison gives, 0 or 1 in any type: it is no reason for what it meets to be f32, as the
  // embeddings that a rank has of the vocabulary are where it has none of others.
  bool is_comparison(ValueId value) const {
    int maker = graph_.producer(value);
    if (maker < 0) return false;
    const Node& node = graph_.nodes()[size_t(maker)];
    return node.op->fusion == Fusion::kView ? is_comparison(node.inputs[0])
                                            : node.op == &op::equal || node.op == &op::less;
  }

  // Whether a comparison chooses between rows.
  bool chooses_rows(const Node& node) const {
    if (node.op != &op::select) return false;
    const Shape& shape = graph_.shape(node.inputs[0]);
    return is_comparison(node.inputs[0]) && (shape.empty() || shape.back() == 1);
  }

  // Ops like concat want one type for all.
  DType widest_type(const ValueIds& inputs) {
    for (ValueId input : inputs)
      if (type(input).dtype == DType::kF32) return DType::kF32;
    return low_;
  }

  // What leaves the graph has the type that it had.
  void restore(ValueId value) {
    if (graph_.producer(value) < 0) return;
    GraphBuilder& g = rewriter_.in_place_of(graph_.nodes()[size_t(graph_.producer(value))]);
    rewriter_.replace(value, as(g, rewriter_.map(value), graph_.dtype(value)));
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::vector<ChosenFormats> formats_;  // by node
  DType low_;                           // of activations
  bool low_residual_;
  std::set<ValueId> low_operands_;  // of products that read them in that type, in the old graph
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
};

// Where a low residual stream begins, as in a stage of a pipeline that has the embeddings alone, there may be no
// product.
bool begins_low_residual(const Node& node, const CompileConfig& options) {
  return node.op == &op::embedding && options.low_residual && is_low(options.precision);
}

bool needs_casts(const Graph& graph, const std::vector<ChosenFormats>& formats, const CompileConfig& options) {
  for (size_t n = 0; n < formats.size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (begins_low_residual(node, options)) return true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      DType own = graph.dtype(node.inputs[i]);
      if (operand_type(node, formats[n], i, own) != own) return true;
    }
  }
  return false;
}

}  // namespace

bool autocast(Graph& graph, const PassContext& context) {
  FormatPolicy policy = context.formats ? context.formats : policy_of(context.options.precision, context.target);
  std::vector<ChosenFormats> formats = choose_formats(graph, policy);
  if (needs_casts(graph, formats, context.options)) {
    graph = Caster(graph, std::move(formats), context.options).run();
    eliminate_dead_code(graph, context);  // views of what is now cast before it is viewed
    return true;
  }
  size_t n = 0;
  return change_nodes(graph, [&](Node& node) {
    Attrs attrs = attrs_with(node, formats[n++]);
    return std::exchange(node.attrs, attrs) != attrs;
  });
}

}  // namespace tokamak
