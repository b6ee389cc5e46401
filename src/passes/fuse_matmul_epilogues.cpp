#include "graph/builder.h"
#include "graph/rewriter.h"
#include "graph/single_node.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "passes/fuse.h"
#include "passes/group_of_node.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

namespace tokamak {
namespace {

// What becomes of a product before it is stored; the forms of a group's body are listed in passes/fuse.h.
enum class Epilogue : uint8_t { kBias, kBiasGelu, kBiasGeluAux, kGeluGrad, kGeluGradSums, kCast, kAccumulate };

// A matmul and the groups that become its epilogue.
struct Chain {
  Epilogue epilogue = Epilogue::kBias;
  const Node* matmul = nullptr;
  ValueId operand = kNoValue;    // bias, pre-activation, or what is added to
  std::vector<int> members;      // nodes that go, the matmul first
  std::vector<ValueId> results;  // of the members, that the new node makes
  int at = 0;                    // the member in whose place the new node stands
};

class EpilogueFuser {
 public:
  EpilogueFuser(const Graph& graph, const Platform& platform)
      : graph_(graph), platform_(platform), target_(platform.target), users_(find_users(graph)),
        escaping_(find_escaping(graph)), is_member_(graph.nodes().size(), false) {}

  bool run() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (graph_.nodes()[n].op != &op::matmul) continue;
      std::optional<Chain> chain = match(int(n));
      if (!chain) continue;
      for (int member : chain->members) is_member_[size_t(member)] = true;
      chains_.emplace(chain->at, std::move(*chain));
    }
    return !chains_.empty();
  }

  Graph rewrite() const {
    Rewriter rewriter(graph_);
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (auto chain = chains_.find(int(n)); chain != chains_.end())
        rewriter.copy(make_group(chain->second));
      else if (!is_member_[n])
        rewriter.copy(graph_.nodes()[n]);
    return rewriter.finish();
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }
  ValueId output(int n) const { return node(n).outputs[0]; }
  const ValueType& type(ValueId value) const { return graph_.type(value); }

  bool is_single_flat(int n) const { return node(n).op == &op::flat && node(n).outputs.size() == 1; }

  // The flat group that is the only reader of the value, or -1.
  int only_reader(ValueId value) const {
    const auto& users = users_[size_t(value)];
    return users.size() == 1 && !escaping_[size_t(value)] && is_single_flat(users[0]) ? users[0] : -1;
  }

  // Whether there is a kernel for the group that was not measured to cost more than it saves.
  bool pays(const Node& group) const {
    if (!platform_.kernels->takes_matmul(graph_, group)) return false;
    const std::set<std::string>& plain = platform_.tuning.plain_matmuls;
    return plain.empty() || !plain.contains(kernel_key(graph_, group));
  }

  // The form that takes in the most of those that pay.
  std::optional<Chain> match(int n) const {
    int reader = only_reader(output(n));
    if (reader < 0) return {};
    std::vector<Chain> chains = match_bias(n, reader);
    if (chains.empty()) chains = match_gelu_grad(n, reader);
    if (auto chain = match_accumulation(n, reader)) chains.push_back(*chain);
    for (Chain& chain : chains)
      if (pays(make_group(chain))) return std::move(chain);
    return {};
  }

  // The vector that the group adds to every row of `x`, when that is all it does; else kNoValue.
  ValueId added_bias(int group, ValueId x) const {
    GroupBody body = group_around(node(group));
    if (body.values.size() != 3 || body.values[2].op != &op::add) return kNoValue;
    for (int side : {0, 1}) {
      const GroupValue &full = body.values[size_t(side)], &bias = body.values[size_t(1 - side)];
      bool fits = full.outer == x && bias.outer != x && bias.outer != kNoValue && body.is_full(full);
      if (fits && graph_.shape(bias.outer) == Shape{graph_.shape(x).back()} &&
          body.values[2].operands[0] != body.values[2].operands[1] && (bias.along_cols || body.cols == 1) &&
          body.cols == graph_.shape(x).back() && !bias.along_rows)
        return bias.outer;
    }
    return kNoValue;
  }

  bool is_unary(int group, const OpDef& op) const {
    GroupBody body = group_around(node(group));
    return body.values.size() == 2 && body.values[1].op == &op;
  }

  // With GELU first, if there is one, then without.
  std::vector<Chain> match_bias(int n, int add) const {
    ValueId product = output(n), sum = output(add), bias = target_.matmul_bias ? added_bias(add, product) : kNoValue;
    if (bias == kNoValue || type(sum) != type(product)) return {};
    std::vector<Chain> chains;
    auto takes = [&](int reader) { return is_unary(reader, op::gelu) && type(output(reader)) == type(product); };
    int only = only_reader(sum);
    if (only >= 0 && target_.matmul_gelu && takes(only))
      chains.push_back({Epilogue::kBiasGelu, &node(n), bias, {n, add, only}, {output(only)}, only});
    // GELU of the same pass: computed again in the backward pass, it must stay there.
    const auto& readers = users_[size_t(sum)];
    auto with_sum = std::find_if(readers.begin(), readers.end(), [&](int reader) {
      return is_single_flat(reader) && takes(reader) && node(reader).has_tag("backward") == node(n).has_tag("backward");
    });
    if (target_.matmul_gelu_aux && with_sum != readers.end())
      chains.push_back({Epilogue::kBiasGeluAux, &node(n), bias, {n, add, *with_sum}, {sum, output(*with_sum)}, add});
    chains.push_back({Epilogue::kBias, &node(n), bias, {n, add}, {sum}, add});
    return chains;
  }

  // gelu_grad(pre, product) alone, and before that with the sums of its rows.
  std::vector<Chain> match_gelu_grad(int n, int group) const {
    if (!target_.matmul_gelu_grad) return {};
    GroupBody body = group_around(node(group));
    if (body.values.size() != 3 || body.values[2].op != &op::gelu_grad) return {};
    const GroupValue& last = body.values[2];
    ValueId pre = body.values[size_t(last.operands[0])].outer, dy = body.values[size_t(last.operands[1])].outer;
    ValueId product = output(n);
    if (dy != product || pre == product || type(pre) != type(product) || type(output(group)) != type(product))
      return {};
    std::vector<Chain> chains;
    ValueId gradient = output(group);
    const auto& readers = users_[size_t(gradient)];
    auto sums =
        std::find_if(readers.begin(), readers.end(), [&](int reader) { return sums_rows_of(reader, gradient); });
    if (target_.matmul_gelu_grad_sums && sums != readers.end())
      chains.push_back({Epilogue::kGeluGradSums, &node(n), pre, {n, group, *sums}, {gradient, output(*sums)}, group});
    chains.push_back({Epilogue::kGeluGrad, &node(n), pre, {n, group}, {gradient}, group});
    return chains;
  }

  // Whether all that the group does is to add up the rows of `x`, in f32.
  bool sums_rows_of(int group, ValueId x) const {
    if (node(group).op != &op::column) return false;
    GroupBody body = group_around(node(group));
    size_t last = body.values.size() - 1;
    const GroupValue& first = body.values[0];
    bool widens = last == 2 && body.values[1].op == &op::cast && body.values[1].dtype == DType::kF32;
    return (last == 1 || widens) && body.values[last].op == &op::reduce_sum && first.outer == x &&
           body.is_full(first) && body.cols == graph_.shape(x).back() && body.results.size() == 1 &&
           size_t(body.results[0].value) == last;
  }

  // Both forms stand where the matmul does: sums and casts of gradients may come at the end of the graph, and until
  // there the matmul's operands would stay alive.
  std::optional<Chain> match_accumulation(int n, int reader) const {
    if (!target_.matmul_accumulate) return {};
    if (ValueId sum = added_to(reader, output(n)); sum != kNoValue)
      return Chain{Epilogue::kAccumulate, &node(n), sum, {n, reader}, {output(reader)}, n};
    if (!is_unary(reader, op::cast) || type(output(reader)).dtype != DType::kF32) return {};
    ValueId widened = output(reader);
    if (int adder = only_reader(widened); adder >= 0)
      if (ValueId sum = added_to(adder, widened); sum != kNoValue)
        return Chain{Epilogue::kAccumulate, &node(n), sum, {n, reader, adder}, {output(adder)}, n};
    // A group would rather read the 16-bit product and cast it on the way.
    for (int user : users_[size_t(widened)])
      if (node(user).body) return {};
    return Chain{Epilogue::kCast, &node(n), kNoValue, {n, reader}, {widened}, n};
  }

  // The argument that the group adds `x` to and that is updated to the sum, when that is all it does; else kNoValue.
  ValueId added_to(int group, ValueId x) const {
    GroupBody body = group_around(node(group));
    if (body.values.size() != 3 || body.values[2].op != &op::add) return kNoValue;
    ValueId sum = output(group);
    for (int side : {0, 1}) {
      ValueId from = body.values[size_t(side)].outer, to = body.values[size_t(1 - side)].outer;
      if (from != x || to == kNoValue || graph_.producer(to) >= 0 || type(to) != type(sum)) continue;
      if (graph_.shape(x) != graph_.shape(sum)) continue;
      for (const Update& update : graph_.updates())
        if (update.target == to && update.value == sum) return to;
    }
    return kNoValue;
  }

  // Over all dims but the last.
  static ValueId sum_rows(GraphBuilder& g, ValueId x, const Shape& shape) {
    std::vector<int64_t> dims(g.shape(x).size() - 1);
    std::iota(dims.begin(), dims.end(), 0);
    return reshape(g, reduce_sum(g, cast(g, x, DType::kF32), std::move(dims), true), shape);
  }

  std::vector<ValueId> make_results(GraphBuilder& g, const Chain& chain, ValueId product, ValueId operand) const {
    switch (chain.epilogue) {
      case Epilogue::kBias: return {add(g, product, operand)};
      case Epilogue::kBiasGelu: return {gelu(g, add(g, product, operand))};
      case Epilogue::kBiasGeluAux: {
        ValueId sum = add(g, product, operand);
        return {sum, gelu(g, sum)};
      }
      case Epilogue::kGeluGrad: return {g.add1(op::gelu_grad, {operand, product})};
      case Epilogue::kGeluGradSums: {
        ValueId gradient = g.add1(op::gelu_grad, {operand, product});
        return {gradient, sum_rows(g, gradient, graph_.shape(chain.results[1]))};
      }
      case Epilogue::kCast: return {cast(g, product, DType::kF32)};
      case Epilogue::kAccumulate: return {add(g, operand, cast(g, product, g.type(operand).dtype))};
    }
    return {};
  }

  // With operands and results of the old graph.
  Node make_group(const Chain& chain) const {
    auto body = std::make_shared<Graph>("body");
    GraphBuilder g(*body);
    std::vector<ValueId> inputs = chain.matmul->inputs, arguments;
    if (chain.operand != kNoValue) inputs.push_back(chain.operand);
    for (size_t i = 0; i < inputs.size(); ++i)
      arguments.push_back(g.input("a" + std::to_string(i), graph_.type(inputs[i])));
    if (chain.matmul->has_tag("tf32")) g.set_tags({"tf32"});
    ValueId product = g.add1(op::matmul, {arguments[0], arguments[1]}, chain.matmul->attrs);
    std::vector<ValueId> results = make_results(g, chain, product, arguments.back());
    for (size_t i = 0; i < results.size(); ++i) body->add_result("r" + std::to_string(i), results[i]);
    return {&op::fused_matmul, std::move(inputs), chain.results, {}, chain.matmul->tags, body};
  }

  const Graph& graph_;
  const Platform& platform_;
  const Target& target_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> escaping_;
  std::vector<bool> is_member_;            // by node: part of a chain
  std::unordered_map<int, Chain> chains_;  // by the node in whose place they stand
};

}  // namespace

bool fuse_matmul_epilogues(Graph& graph, const PassContext& context) {
  EpilogueFuser fuser(graph, context);
  if (!fuser.run()) return false;
  graph = fuser.rewrite();
  return true;
}

}  // namespace tokamak
