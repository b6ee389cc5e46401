// Random small graphs of the ops that models are made of, with values kept near 1 so that fp32 can be compared with
// double: sums are scaled to means, products and exponents go through tanh.
#pragma once

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

#include <random>

namespace tokamak::test {

class RandomModel {
 public:
  explicit RandomModel(uint32_t seed) : random_(seed), g_(graph_) {}

  /// A graph with results, and in half of the cases gradients, updates or a whole optimizer step.
  Graph make() {
    rng_ = g_.input("rng", {DType::kI32, {2}});
    for (int i = 0; i < 3; ++i) values_.push_back(parameter(random_shape()));
    values_.push_back(g_.input("x", {DType::kF32, random_shape()}));
    for (int i = 0, n = 3 + below(12); i < n; ++i) values_.push_back(random_op(pick()));
    ValueId loss = add_loss();
    for (int i = 0; i < below(3); ++i) graph_.add_result(fmt::format("r{}", i), pick());
    if (below(3)) add_backward(loss);
    return std::move(graph_);
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  int64_t random_size() {
    static constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 17, 33};
    return kSizes[below(9)];
  }
  Shape random_shape() {
    Shape shape;
    for (int i = 0, rank = 1 + below(3); i < rank; ++i) shape.push_back(random_size());
    return shape;
  }
  ValueId parameter(Shape shape) {
    return g_.parameter(fmt::format("w{}", parameters_++), {DType::kF32, std::move(shape)});
  }
  // Mostly recent values, so that chains form.
  ValueId pick() {
    auto n = int(values_.size());
    return values_[size_t(below(3) ? n - 1 - below(std::min(n, 4)) : below(n))];
  }
  int64_t size_of(ValueId a) { return num_elements(g_.shape(a)); }
  int64_t rank(ValueId a) { return int64_t(g_.shape(a).size()); }
  ValueId scaled(ValueId a, double factor) { return mul(g_, a, constant(g_, factor)); }

  // Something that broadcasts with `a`: a value of its shape, a row, a column or a scalar.
  ValueId partner(ValueId a) {
    Shape shape = g_.shape(a);
    for (int i = 0; i < 6; ++i)
      if (ValueId b = pick(); g_.shape(b) == shape) return b;
    for (int64_t& d : shape)
      if (below(3) == 0) d = 1;
    if (!shape.empty() && below(3) == 0) shape.erase(shape.begin(), shape.begin() + below(int(shape.size())) + 1);
    return parameter(shape);
  }

  ValueId random_op(ValueId a) {
    switch (below(19)) {
      case 0: return scaled(add(g_, a, partner(a)), 0.5);
      case 1: return sub(g_, partner(a), a);
      case 2: return mul(g_, tanh(g_, a), tanh(g_, partner(a)));
      case 3: return div(g_, a, add(g_, constant(g_, 2), tanh(g_, partner(a))));
      case 4: return maximum(g_, a, partner(a));
      case 5: return gelu(g_, a);
      case 6: return exp(g_, tanh(g_, a));
      case 7: return sqrt(g_, add(g_, constant(g_, 0.5), mul(g_, a, a)));
      case 8: return reduction(a);
      case 9: return below(2) ? reshape(g_, a, {-1}) : reshape(g_, a, reversed(g_.shape(a)));
      case 10: return permuted(a);
      case 11: return sliced(a);
      case 12: return joined(a);
      case 13: return product(a);
      case 14: return rank(a) == 0 ? a : softmax(g_, a);
      case 15: return normalised(a);
      case 16: return dropout(g_, a, rng_, 0.1 + 0.2 * below(4), random_stream_++);
      case 17: return looked_up();
      default: return attended();
    }
  }

  static Shape reversed(Shape shape) { return {shape.rbegin(), shape.rend()}; }

  ValueId reduction(ValueId a) {
    std::vector<int64_t> dims;
    double count = 1;
    for (int64_t d = 0; d < rank(a); ++d)
      if (below(2)) {
        dims.push_back(d);
        count *= double(g_.shape(a)[size_t(d)]);
      }
    bool keep = below(2);
    return below(3) ? scaled(reduce_sum(g_, a, dims, keep), 1 / count) : reduce_max(g_, a, dims, keep);
  }

  ValueId permuted(ValueId a) {
    std::vector<int64_t> perm;
    for (int64_t d = 0; d < rank(a); ++d) perm.push_back(d);
    std::shuffle(perm.begin(), perm.end(), random_);
    return transpose(g_, a, perm);
  }

  ValueId sliced(ValueId a) {
    if (rank(a) == 0) return neg(g_, a);
    int dim = below(int(rank(a)));
    int64_t size = g_.shape(a)[size_t(dim)], begin = below(int(size));
    if (below(3) == 0) return pad(g_, a, dim, below(3), below(3));
    return slice(g_, a, dim, begin, 1 + below(int(size - begin)));
  }

  ValueId joined(ValueId a) {
    if (rank(a) == 0 || size_of(a) > 2000) return neg(g_, a);
    return concat(g_, {a, below(2) ? a : neg(g_, a)}, below(int(rank(a))));
  }

  ValueId product(ValueId a) {
    if (rank(a) < 2) a = reshape(g_, a, {1, -1});
    int64_t k = g_.shape(a).back(), n = random_size();
    bool transposed = below(2);
    ValueId y =
        scaled(matmul(g_, a, parameter(transposed ? Shape{n, k} : Shape{k, n}), false, transposed), 1 / double(k));
    if (below(2)) y = add(g_, y, parameter({n}));
    return below(3) ? y : gelu(g_, y);
  }

  ValueId normalised(ValueId a) {
    if (rank(a) == 0) return tanh(g_, a);
    int64_t C = g_.shape(a).back();
    return layer_norm(g_, a, parameter({C}), below(2) ? parameter({C}) : kNoValue, 0.1);
  }

  ValueId looked_up() {
    int64_t rows = 1 + below(9);
    Shape ids;
    for (int i = 0; i < below(3); ++i) ids.push_back(random_size());
    ValueId table = parameter({std::max<int64_t>(rows, kClasses), random_size()});
    return embedding(g_, table, g_.input(fmt::format("ids{}", parameters_), {DType::kI32, ids}));
  }

  ValueId attended() {
    int64_t heads = 1 + below(3), C = heads * (1 + below(5));
    AttentionOptions options{.heads = heads,
                             .causal = below(3) > 0,
                             .scale = 0.5,
                             .dropout = below(3) ? 0.0 : 0.25,
                             .random_stream = random_stream_++};
    int64_t B = 1 + below(2), T = random_size();
    ValueId qkv = tanh(g_, parameter({B, T, 3 * C})), documents = kNoValue;
    if (below(2)) qkv = add(g_, qkv, parameter({3 * C}));
    if (below(2)) documents = g_.input(fmt::format("documents{}", parameters_), {DType::kI32, {B, T}});
    return attention(g_, qkv, options, rng_, documents);
  }

  // The mean of a value, or the cross entropy of a classifier on it.
  ValueId add_loss() {
    ValueId a = values_.back();
    if (below(2)) {
      a = reshape(g_, a, {-1, rank(a) ? g_.shape(a).back() : 1});
      int64_t R = g_.shape(a)[0], C = g_.shape(a)[1], V = kClasses + below(9);
      ValueId logits = matmul(g_, a, parameter({V, C}), false, true);
      a = cross_entropy(g_, logits, g_.input("targets", {DType::kI32, {R}}), V);
    }
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < rank(a); ++d) dims.push_back(d);
    ValueId loss = scaled(reduce_sum(g_, a, dims, false), 1 / double(size_of(a)));
    graph_.add_result("loss", loss);
    return loss;
  }

  void add_backward(ValueId loss) {
    ValueIds wrt;
    for (const Argument& argument : graph_.arguments())
      if (argument.kind == Argument::Kind::kParameter) wrt.push_back(argument.value);
    ValueIds grads = differentiate(g_, loss, wrt);
    Gradients known;
    for (size_t i = 0; i < wrt.size(); ++i) {
      if (grads[i] == kNoValue) continue;
      known.parameters.push_back(wrt[i]);
      known.grads.push_back(grads[i]);
    }
    if (known.grads.empty()) return;
    int form = below(3);
    if (form == 0)
      append_update(g_, known, OptimizerConfig{.name = below(2) ? "adamw" : "sgd", .eps = 0.05, .clip = 0.5});
    for (size_t i = 0; i < known.grads.size(); ++i) {
      if (form == 1) graph_.add_result(fmt::format("grad{}", i), known.grads[i]);
      if (form == 2) graph_.add_update(known.parameters[i], sub(g_, known.parameters[i], scaled(known.grads[i], 0.1)));
    }
  }

  // Tables have at least as many rows, so that every integer below it is a valid id and a valid target.
  static constexpr int64_t kClasses = 4;

  std::mt19937 random_;
  Graph graph_{"random"};
  GraphBuilder g_;
  ValueId rng_ = kNoValue;
  ValueIds values_;
  int parameters_ = 0;
  int64_t random_stream_ = 0;
};

/// Optimizer states as they can occur: second moments are not negative, steps count from 0.
inline std::vector<HostTensor> arguments_of(const Graph& graph, uint32_t seed) {
  std::vector<HostTensor> arguments = random_arguments(graph, seed);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = graph.arguments()[i].name;
    if (name == "step") arguments[i][0] = double(seed % 5);
    if (name.starts_with("adam.v."))
      for (double& v : arguments[i].data) v = std::fabs(v);
  }
  return arguments;
}

}  // namespace tokamak::test
