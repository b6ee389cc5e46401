// Random small graphs for properties of plans: pointwise ops, views, adamw, groups, updates and results of all kinds.
#pragma once

#include "graph/builder.h"
#include "ops/adamw.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <fmt/core.h>

#include <random>

namespace tokamak::testing {

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed), g_(graph_) {}

  Graph make(int num_nodes) {
    for (int i = 0; i < 3; ++i) values_.push_back(g_.input(fmt::format("x{}", i), random_type()));
    for (int i = 0; i < 4; ++i) targets_.push_back(g_.parameter(fmt::format("w{}", i), random_type()));
    for (int i = 0; i < 2; ++i) targets_.push_back(g_.state(fmt::format("s{}", i), random_type()));
    values_.insert(values_.end(), targets_.begin(), targets_.end());
    for (int i = 0; i < num_nodes; ++i) add_random_node();
    for (int i = 0; i < 2; ++i) graph_.add_result(fmt::format("r{}", i), pick());
    for (ValueId target : targets_) add_random_update(target);
    return std::move(graph_);
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  ValueType random_type() {
    static const Shape kShapes[] = {{4, 8}, {4, 8}, {32}, {8}, {2, 4, 8}, {}, {64}};
    return {DType::kF32, kShapes[below(7)]};
  }
  // Mostly recent values, so that chains form.
  ValueId pick() {
    auto n = int(values_.size());
    return values_[size_t(below(3) ? n - 1 - below(std::min(n, 5)) : below(n))];
  }
  ValueId pick(Shape shape) {
    for (int i = 0; i < 20; ++i)
      if (ValueId value = pick(); g_.shape(value) == shape) return value;
    return constant(g_, 1, shape);
  }

  void add_random_node() {
    ValueId a = pick();
    switch (below(8)) {
      case 0: values_.push_back(exp(g_, a)); return;
      case 1: values_.push_back(mul(g_, a, pick(g_.shape(a)))); return;
      case 2: values_.push_back(add(g_, constant(g_, 2), a)); return;
      case 3: values_.push_back(g_.add1(op::reshape, {a}, {{"shape", other_shape(g_.shape(a))}})); return;
      case 4: values_.push_back(g_.shape(a).empty() ? neg(g_, a) : reduce_sum(g_, a, {0}, false)); return;
      case 5: return add_adamw(a);
      case 6: return add_part(a);
      default: return add_group(a, pick(g_.shape(a)));
    }
  }

  Shape other_shape(Shape shape) {
    int64_t n = num_elements(shape);
    if (n % 8 || below(3) == 0) return {n};
    return below(2) ? Shape{n / 8, 8} : Shape{n / 8, 2, 4};
  }

  // As a view, where it may be one; of all but the first 64 bytes, where there are more.
  void add_part(ValueId a) {
    const Shape shape = g_.shape(a);
    if (shape.empty()) return;
    int64_t in_piece = kViewAlignment / (num_bytes(g_.type(a)) / shape[0]),
            begin = below(2) * std::max<int64_t>(in_piece, 1);
    if (begin >= shape[0]) return;
    const Attrs attrs{{"begin", begin}, {"dim", int64_t(0)}, {"size", shape[0] - begin}};
    const ValueType type = g_.type(a);
    bool may_view = may_view_slice({op::slice_view, {type}, attrs});
    values_.push_back(g_.add1(may_view ? op::slice_view : op::slice, {a}, attrs));
  }

  void add_adamw(ValueId parameter) {
    Shape shape = g_.shape(parameter);
    ValueId one = constant(g_, 1);
    for (ValueId value : g_.add(op::adamw, {parameter, pick(shape), pick(shape), pick(shape), one, one, one},
                                {{"beta1", 0.9}, {"beta2", 0.9}, {"decay", 0.0}, {"eps", 1e-8}}))
      values_.push_back(value);
  }

  // (a, b) -> a * b, exp(a * b) + (a or b)
  void add_group(ValueId a, ValueId b) {
    auto body = std::make_shared<Graph>("body");
    GraphBuilder inner(*body);
    const Shape shape = g_.shape(a), matrix{1, num_elements(shape)};
    ValueId x = reshape(inner, inner.input("a", g_.type(a)), matrix);
    ValueId y = reshape(inner, inner.input("b", g_.type(b)), matrix);
    ValueId product = mul(inner, x, y);
    body->add_result("p", reshape(inner, product, shape));
    body->add_result("q", reshape(inner, add(inner, exp(inner, product), below(2) ? x : y), shape));
    for (ValueId value : g_.add(below(3) ? op::flat : op::row, {a, b}, {}, body)) values_.push_back(value);
  }

  void add_random_update(ValueId target) {
    ValueIds fitting;
    for (ValueId value : values_)
      if (g_.type(value) == g_.type(target)) fitting.push_back(value);
    if (below(4)) graph_.add_update(target, fitting[size_t(below(int(fitting.size())))]);
  }

  std::mt19937 random_;
  Graph graph_;
  GraphBuilder g_;
  ValueIds values_, targets_;
};

}  // namespace tokamak::testing
