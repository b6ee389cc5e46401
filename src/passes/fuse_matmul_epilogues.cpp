#include "graph/rewriter.h"
#include "graph/single_node.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "passes/fuse.h"
#include "passes/group_of_node.h"
#include "passes/pointwise_function.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace tokamak {
namespace {

// A matmul and the groups that become its epilogue.
struct Chain {
  MatmulForm form;  // of the matmul's inputs and, where there is one, `operand`
  const Node* matmul = nullptr;
  ValueId operand = kNoValue;  // bias, what the function reads, or what is added to
  ValueId scale = kNoValue;    // of the function's result in eight bits
  std::vector<int> members;    // nodes that go, the matmul first
  ValueIds results;            // of the members, that the new node makes
  int at = 0;                  // the member in whose place the new node stands
};

class EpilogueFuser {
 public:
  EpilogueFuser(const Graph& graph, const Platform& platform)
      : graph_(graph), platform_(platform), target_(platform.target), readers_(graph),
        is_member_(graph.nodes().size(), false) {}

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

  // Whether there is a kernel for the group that was not measured to cost more than it saves.
  bool pays(const Node& group) const {
    if (!platform_.kernels->takes_matmul(graph_, group)) return false;
    const std::set<std::string>& slow = platform_.tuning.slow_forms;
    return slow.empty() || !slow.contains(kernel_key(graph_, group));
  }

  // The form that takes in the most of those that pay.
  std::optional<Chain> match(int n) const {
    int reader = readers_.only(output(n));
    if (reader < 0) return {};
    std::vector<Chain> chains = match_bias(n, reader);
    if (chains.empty()) chains = match_function(n, reader);
    if (auto chain = match_accumulation(n, reader)) chains.push_back(*chain);
    for (Chain& chain : chains) narrow(chain);
    for (Chain& chain : chains)
      if (is_free(chain) && pays(make_group(chain))) return std::move(chain);
    return {};
  }

  // Of a product of two functions, each of a matmul, one matmul takes what is between them.
  bool is_free(const Chain& chain) const {
    return std::none_of(chain.members.begin(), chain.members.end(), [&](int n) { return is_member_[size_t(n)]; });
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

  Chain chain_of(int n) const {
    Chain chain;
    chain.matmul = &node(n);
    chain.form = plain_form(graph_, node(n));
    chain.members = {n};
    return chain;
  }

  // The value becomes the new node's last input, in this part of the form.
  static void take(Chain& chain, int& part, ValueId operand) {
    part = int(chain.matmul->inputs.size());
    chain.operand = operand;
  }

  static void add_function(Chain& chain, const PointwiseFunction& function) {
    chain.form.function = function.body;
    chain.members.insert(chain.members.end(), function.members.begin(), function.members.end());
    chain.results.push_back(function.result);
    chain.at = function.members.back();
  }

  // With a function first, if there is one, then without.
  std::vector<Chain> match_bias(int n, int add) const {
    ValueId product = output(n), sum = output(add), bias = target_.matmul_bias ? added_bias(add, product) : kNoValue;
    if (bias == kNoValue || type(sum) != type(product)) return {};
    Chain biased = chain_of(n);
    take(biased, biased.form.bias, bias);
    biased.members.push_back(add);
    std::vector<Chain> chains;
    auto unary = [&](int reader) {
      std::vector<PointwiseFunction> found = functions_of(graph_, readers_, reader, sum);
      std::erase_if(found, [](const PointwiseFunction& f) { return f.operand != kNoValue; });
      return found;
    };
    if (int only = readers_.only(sum); only >= 0 && target_.matmul_function)
      for (const PointwiseFunction& function : unary(only)) add_function(chains.emplace_back(biased), function);
    for (const PointwiseFunction& function : with_argument(n, sum, unary)) {
      Chain& chain = chains.emplace_back(biased);
      chain.results = {sum};
      add_function(chain, function);
      chain.form.argument = 0;
      chain.form.y = 1;
      chain.at = add;
    }
    biased.results = {sum};
    biased.at = add;
    chains.push_back(std::move(biased));
    return chains;
  }

  // Functions of the sum in the pass of the matmul: one that is computed again in the backward pass must stay there.
  template <typename Unary>
  std::vector<PointwiseFunction> with_argument(int n, ValueId sum, const Unary& unary) const {
    if (!target_.matmul_argument) return {};
    for (int reader : readers_.of(sum))
      if (node(reader).phase == node(n).phase)
        if (std::vector<PointwiseFunction> found = unary(reader); !found.empty()) return found;
    return {};
  }

  // A function of the product and a matrix alone, and before that with the sums of its rows. A lone sum is left to the
  // norm that reads it.
  std::vector<Chain> match_function(int n, int group) const {
    if (!target_.matmul_operand) return {};
    std::vector<Chain> chains;
    for (const PointwiseFunction& function : functions_of(graph_, readers_, group, output(n))) {
      const GroupBody& body = function.body;
      bool lone_sum = body.num_nodes() == 1 && body.values[size_t(body.results[0].value)].is(op::add);
      if (function.operand == kNoValue || lone_sum) continue;
      Chain chain = chain_of(n);
      take(chain, chain.form.operand, function.operand);
      add_function(chain, function);
      const auto& readers = readers_.of(function.result);
      auto sums = std::find_if(readers.begin(), readers.end(),
                               [&](int reader) { return sums_rows_of(reader, function.result); });
      if (target_.matmul_operand_sums && sums != readers.end()) {
        Chain& summed = chains.emplace_back(chain);
        summed.form.sums = 1;
        summed.form.sums_shape = graph_.shape(output(*sums));
        summed.members.push_back(*sums);
        summed.results.push_back(output(*sums));
      }
      chains.push_back(std::move(chain));
    }
    return chains;
  }

  // The node that does nothing but this op, to `x` and at most a number, and makes such a type; -1: there is none.
  int narrowing_step(ValueId x, const OpDef& op, DType made, ValueId* number = nullptr) const {
    for (int reader : readers_.of(x)) {
      if (!readers_.is_single_flat(reader) || type(output(reader)).dtype != made) continue;
      GroupBody body = group_around(node(reader));
      if (body.num_nodes() != 1 || !body.values.back().is(op) || body.values[0].outer != x) continue;
      if (!number) return reader;
      const GroupValue& scale = body.values[1];
      if (body.values.size() != 3 || !scale.is_input() || type(scale.outer) != ValueType{DType::kF32, {}}) continue;
      *number = scale.outer;
      return reader;
    }
    return -1;
  }

  // A function's result that is read in eight bits alone, but for its sums, is stored so.
  void narrow(Chain& chain) const {
    if (!chain.form.function) return;
    ValueId result = chain.results[size_t(chain.form.y)], number = kNoValue;
    if (readers_.of(result).size() != (chain.form.sums >= 0 ? 2u : 1u) || readers_.escapes(result)) return;
    int wide = narrowing_step(result, op::cast, DType::kF32);
    int scaled = wide < 0 ? -1 : narrowing_step(output(wide), op::mul, DType::kF32, &number);
    if (scaled < 0 || readers_.only(output(wide)) < 0) return;
    int last = readers_.only(output(scaled));
    if (last < 0 || !is_float8(type(output(last)).dtype) || !is_made_before(number, chain.at)) return;
    chain.form.narrow_scale = int(chain.matmul->inputs.size() + (chain.operand == kNoValue ? 0 : 1));
    chain.form.narrow = type(output(last)).dtype;
    chain.scale = number;
    chain.members.insert(chain.members.end(), {wide, scaled, last});
    chain.results[size_t(chain.form.y)] = output(last);
  }

  bool is_made_before(ValueId value, int n) const { return graph_.producer(value) < n; }

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
    Chain chain = chain_of(n);
    chain.members.push_back(reader);
    chain.results = {output(reader)};
    chain.form.output = type(output(reader)).dtype;
    chain.at = n;
    if (ValueId sum = added_to(reader, output(n)); sum != kNoValue) return onto(std::move(chain), sum);
    GroupBody body = group_around(node(reader));
    if (body.values.size() != 2 || !body.values[1].is(op::cast) || chain.form.output != DType::kF32) return {};
    ValueId widened = output(reader);
    if (int adder = readers_.only(widened); adder >= 0)
      if (ValueId sum = added_to(adder, widened); sum != kNoValue) {
        chain.members.push_back(adder);
        chain.results = {output(adder)};
        return onto(std::move(chain), sum);
      }
    // A group would rather read the 16-bit product and cast it on the way.
    for (int user : readers_.of(widened))
      if (node(user).body) return {};
    return chain;
  }

  static Chain onto(Chain chain, ValueId sum) {
    take(chain, chain.form.addend, sum);
    return chain;
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

  // With operands and results of the old graph.
  Node make_group(const Chain& chain) const {
    ValueIds inputs = chain.matmul->inputs;
    for (ValueId more : {chain.operand, chain.scale})
      if (more != kNoValue) inputs.push_back(more);
    ValueTypes types;
    for (ValueId input : inputs) types.push_back(type(input));
    auto body = make_body(chain.form, types);
    Node group = *chain.matmul;
    group.op = &op::fused_matmul;
    group.inputs = std::move(inputs);
    group.outputs = chain.results;
    group.attrs = {};
    group.body = std::move(body);
    return group;
  }

  const Graph& graph_;
  const Platform& platform_;
  const Target& target_;
  Readers readers_;
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
