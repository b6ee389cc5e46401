#include "backend/cuda/codegen/group_body.h"

#include "ops/generate.h"
#include "ops/group_form.h"
#include "ops/movement.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tokamak::cuda {
namespace {

class Reader {
 public:
  explicit Reader(const Node& group) : graph_(*group.body) {
    GroupSpace space = group_space(group);
    body_.kind = group.op;
    body_.rows = space.rows;
    body_.cols = space.cols;
    for (const Argument& argument : graph_.arguments()) body_.arguments.push_back(graph_.dtype(argument.value));
    index_.assign(size_t(graph_.num_values()), -1);
  }

  GroupBody run() {
    for (const Node& node : graph_.nodes()) {
      ValueId out = node.outputs[0];
      if (node.op == &op::reshape && graph_.producer(node.inputs[0]) >= 0)
        index_[size_t(out)] = index_[size_t(node.inputs[0])];  // the edge of a result
      else if (node.op == &op::reshape)
        index_[size_t(out)] = argument(node.inputs[0], graph_.shape(out));
      else
        index_[size_t(out)] = compute(node);
    }
    for (const Result& result : graph_.results())
      body_.results.push_back({place_of(result.value), graph_.dtype(result.value)});
    return std::move(body_);
  }

 private:
  int argument_index(ValueId value) const {
    for (size_t i = 0; i < graph_.arguments().size(); ++i)
      if (graph_.arguments()[i].value == value) return int(i);
    return -1;
  }

  int place_of(ValueId value) {
    int& index = index_[size_t(value)];
    if (index < 0) index = argument(value, graph_.shape(value));
    return index;
  }

  // An argument read with a shape; once for each form.
  int argument(ValueId value, const Shape& shape) {
    BodyValue made{.argument = argument_index(value), .dtype = graph_.dtype(value), .operands = {}};
    made.along_rows = shape[0] > 1;
    made.along_cols = shape[1] > 1;
    auto [at, fresh] = arguments_.try_emplace({made.argument, made.along_rows, made.along_cols}, body_.values.size());
    if (fresh) body_.values.push_back(std::move(made));
    return int(at->second);
  }

  int compute(const Node& node) {
    ValueId out = node.outputs[0];
    BodyValue made{.node = &node, .dtype = graph_.dtype(out), .operands = {}};
    made.along_rows = graph_.shape(out)[0] > 1;
    made.along_cols = graph_.shape(out)[1] > 1;
    if (node.op == &op::random_uniform)
      made.argument = argument_index(node.inputs[0]);
    else
      for (ValueId input : node.inputs) made.operands.push_back(place_of(input));
    body_.values.push_back(std::move(made));
    return int(body_.values.size()) - 1;
  }

  const Graph& graph_;
  GroupBody body_;
  std::vector<int> index_;  // by value of the graph
  std::map<std::tuple<int, bool, bool>, size_t> arguments_;
};

}  // namespace

int64_t GroupBody::narrowest_bytes() const {
  int64_t bytes = 4;
  for (const BodyValue& v : values)
    if (v.is_argument() && is_full(v)) bytes = std::min(bytes, dtype_bytes(v.dtype));
  for (const BodyResult& r : results)
    if (is_full(values[size_t(r.value)])) bytes = std::min(bytes, dtype_bytes(r.dtype));
  return bytes;
}

GroupBody read_group(const Node& group) { return Reader(group).run(); }

}  // namespace tokamak::cuda
