#include "passes/split_chunk.h"

#include "base/error.h"
#include "graph/op_def.h"
#include "ops/matmul.h"
#include "ops/pointwise.h"
#include "passes/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tokamak {
namespace {

class Splitter {
 public:
  explicit Splitter(const Chunk& chunk) : chunk_(chunk), graph_(chunk.graph), made_in_(graph_.nodes().size(), kNobody) {
    find_activations();
  }

  std::vector<Graph> run(bool splits_backward) {
    std::vector<Part> parts = {{"forward" + chunk_.suffix},
                               {(splits_backward ? "backward_input" : "backward") + chunk_.suffix}};
    if (splits_backward) parts.push_back({"backward_weight" + chunk_.suffix});
    parts[0].updates = take_updates([&](const Update& u) { return name_of(u.target) == chunk_.output; });
    claim(ends_of(parts[0]), 0);
    if (chunk_.is_last) parts[0].updates.clear();
    parts[1].updates = take_updates(
        [&](const Update& u) { return name_of(u.target) == chunk_.input_gradient || is_loss_sum(u.target); });
    parts[1].results = graph_.results();
    claim(ends_of(parts[1]), 1);
    for (const Update& update : take_updates([&](const Update& u) { return !splits_backward || is_cheap(u.value); }))
      parts[1].updates.push_back(update);
    claim(ends_of(parts[1]), 1);
    if (splits_backward) {
      parts[2].updates = take_updates([](const Update&) { return true; });
      claim(ends_of(parts[2]), 2);
    }
    for (size_t p = 1; p < parts.size(); ++p) connect(parts, p);
    std::vector<Graph> programs;
    for (const Part& part : parts) programs.push_back(extract(graph_, part));
    return programs;
  }

 private:
  static constexpr int kNobody = -1;

  // Activations: values that depend on the micro-batch and on parameters. The residual stream that comes in is one.
  void find_activations() {
    std::vector<bool> moves(size_t(graph_.num_values()), false), weighs(moves);
    for (const Argument& a : graph_.arguments()) {
      moves[size_t(a.value)] = a.kind == Argument::Kind::kInput || a.spec.role == Role::kResidual;
      weighs[size_t(a.value)] =
          a.kind == Argument::Kind::kParameter || a.spec.role == Role::kWeights || a.spec.role == Role::kResidual;
    }
    for (const Node& node : graph_.nodes())
      for (ValueId output : node.outputs)
        for (ValueId input : node.inputs) {
          if (moves[size_t(input)]) moves[size_t(output)] = true;
          if (weighs[size_t(input)]) weighs[size_t(output)] = true;
        }
    for (size_t v = 0; v < moves.size(); ++v) is_activation_.push_back(moves[v] && weighs[v]);
  }

  const std::string& name_of(ValueId argument) const { return graph_.argument_of(argument)->name; }

  // The sum of losses; it is added where the backward pass begins, which has what it is made of.
  bool is_loss_sum(ValueId argument) const {
    const ArgumentSpec& spec = graph_.argument_of(argument)->spec;
    return spec.role == Role::kGradientSum && spec.of.empty();
  }

  template <typename Belongs>
  std::vector<Update> take_updates(const Belongs& belongs) {
    std::vector<Update> taken;
    for (const Update& update : graph_.updates())
      if (!taken_.count(update.target) && belongs(update)) taken.push_back(update);
    for (const Update& update : taken) taken_.insert(update.target);
    return taken;
  }

  static ValueIds ends_of(const Part& part) {
    ValueIds ends;
    for (const Result& result : part.results) ends.push_back(result.value);
    for (const Update& update : part.updates) ends.push_back(update.value);
    return ends;
  }

  // Gives the program all nodes that these values are made of, but for those that another program has already.
  void claim(const ValueIds& ends, int program) {
    std::vector<bool> needed(size_t(graph_.num_values()), false);
    for (ValueId end : ends) needed[size_t(end)] = true;
    for (size_t n = graph_.nodes().size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      if (std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return needed[size_t(v)]; }))
        continue;
      if (made_in_[n] == kNobody) made_in_[n] = program;
      for (ValueId input : node.inputs) needed[size_t(input)] = true;
    }
  }

  // Whether a gradient needs no matrix product that no program has yet. A gradient that is a sum
  // stays where a kernel may make it beside other work: a kernel of its own would add in another order.
  bool is_cheap(ValueId value) const {
    ValueIds wanted = {value};
    std::set<ValueId> seen(wanted.begin(), wanted.end());
    while (!wanted.empty()) {
      int maker = graph_.producer(wanted.back());
      wanted.pop_back();
      if (maker < 0 || made_in_[size_t(maker)] != kNobody) continue;
      const Node& node = graph_.nodes()[size_t(maker)];
      if (node.op == &op::matmul) return false;
      for (ValueId input : node.inputs)
        if (seen.insert(input).second) wanted.push_back(input);
    }
    return true;
  }

  // Whether a value is kept for the program `reader`; what is not is computed again there.
  bool is_left(ValueId value, int reader) const {
    int maker = graph_.producer(value);
    if (maker < 0 || !is_activation_[size_t(value)] || made_in_[size_t(maker)] >= reader) return false;
    const Node& node = graph_.nodes()[size_t(maker)];
    bool widens = node.op == &op::cast && num_bytes(graph_.type(value)) > num_bytes(graph_.type(node.inputs[0]));
    return !widens && node.op->fusion != Fusion::kView;
  }

  // What program `reader` needs of earlier ones becomes states: they write them, and it reads them. They are numbered
  // as the values are made, whatever reads them.
  void connect(std::vector<Part>& parts, size_t reader) {
    for (ValueId value : left_values(ends_of(parts[reader]), int(reader)))
      parts[reader].given[value] = leave(parts[size_t(made_in_[size_t(graph_.producer(value))])], value);
  }

  // Values that are kept for the program `reader`, of those that `ends` are made of.
  std::set<ValueId> left_values(ValueIds wanted, int reader) const {
    std::set<ValueId> seen(wanted.begin(), wanted.end()), left;
    while (!wanted.empty()) {
      ValueId value = wanted.back();
      wanted.pop_back();
      int maker = graph_.producer(value);
      if (is_left(value, reader)) {
        left.insert(value);
      } else if (maker >= 0) {
        for (ValueId input : graph_.nodes()[size_t(maker)].inputs)
          if (seen.insert(input).second) wanted.push_back(input);
      }
    }
    return left;
  }

  const StandIn& leave(Part& maker, ValueId value) {
    auto [at, is_new] = states_.try_emplace(value);
    if (is_new) {
      const ValueType& type = graph_.type(value);
      std::string name = fmt::format("act.{}.{}", chunk_.number, states_.size() - 1);
      at->second = {name, type, {Role::kActivation, "", type.shape}};
      maker.left.emplace_back(value, at->second);
    }
    return at->second;
  }

  const Chunk& chunk_;
  const Graph& graph_;
  std::vector<bool> is_activation_;  // by value
  std::vector<int> made_in_;         // by node
  std::set<ValueId> taken_;          // arguments whose update some program does
  std::map<ValueId, StandIn> states_;
};

}  // namespace

std::vector<Graph> split_chunk(const Chunk& chunk, bool splits_backward) {
  return Splitter(chunk).run(splits_backward);
}

}  // namespace tokamak
