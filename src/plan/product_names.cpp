#include "plan/product_names.h"

#include "graph/op_def.h"
#include "ops/embedding.h"
#include "ops/float8_weights.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/movement.h"
#include "ops/multi_cast.h"
#include "ops/parameter_kind.h"
#include "ops/row_block.h"
#include "ops/work_class.h"

#include <algorithm>
#include <deque>
#include <set>

namespace tokamak {
namespace {

bool is_product(const Node& node) {
  return node.op == &op::matmul || node.op == &op::fused_matmul || node.op == &op::row_block;
}

bool makes_something_else(const Node& node) {
  WorkClass work = work_class(node);
  return work == WorkClass::kMatmul || work == WorkClass::kAttention || node.op == &op::embedding;
}

// What the node puts side by side in this output; nothing where it does not.
std::span<const ValueId> side_by_side(const Node& node, ValueId output) {
  if (node.op == &op::concat) return node.inputs;
  if (node.op != &op::multi_cast) return {};
  return cast_values(node, size_t(std::ranges::find(node.outputs, output) - node.outputs.begin()));
}

}  // namespace

std::string joined_name(std::span<const std::string> names) {
  if (names.empty()) return {};
  std::string_view first = names[0];
  size_t head = first.size(), tail = first.size();
  for (std::string_view name : names) {
    head = std::min(head,
                    size_t(std::mismatch(first.begin(), first.end(), name.begin(), name.end()).first - first.begin()));
    tail = std::min(
        tail, size_t(std::mismatch(first.rbegin(), first.rend(), name.rbegin(), name.rend()).first - first.rbegin()));
  }
  // Parts begin behind a dot, also where their first letters are the same, and have a letter each.
  head = first.rfind('.', head == 0 ? 0 : head - 1);
  head = head == first.npos ? 0 : head + 1;
  for (std::string_view name : names) tail = std::min(tail, name.size() - std::min(name.size(), head + 1));
  std::string joined(first.substr(0, head));
  for (size_t i = 0; i < names.size(); ++i)
    joined += (i == 0 ? "" : "+") + names[i].substr(head, names[i].size() - tail - head);
  return joined + std::string(first.substr(first.size() - tail));
}

std::string product_label(const NamedProduct& product) {
  constexpr std::string_view kWeight = ".weight";
  std::string label = without_block(product.parameter);
  if (label.ends_with(kWeight)) label.resize(label.size() - kWeight.size());
  switch (product.part) {
    case ProductPart::kForward: return label + (product.again ? " again" : "");
    case ProductPart::kInputGradient: return label + " dgrad";
    case ProductPart::kWeightGradient: return label + " wgrad";
  }
  return label;
}

std::optional<NamedProduct> ProductFinder::find(const Node& node) const {
  if (!is_product(node) || node.phase == Phase::kUpdate) return std::nullopt;
  MatmulForm form = read_matmul(graph_, node);
  if (form.batch > 1) return std::nullopt;
  bool is_backward = node.phase == Phase::kBackward && !node.recompute;
  std::optional<Name> name = source_of(node.inputs[size_t(form.b)]);
  if (!name && form.a >= 0) name = source_of(node.inputs[size_t(form.a)]);
  if (name)
    return NamedProduct{name->parameter, name->argument,
                        is_backward ? ProductPart::kInputGradient : ProductPart::kForward, node.recompute};
  if (!is_backward) return std::nullopt;
  name = target_of(node.outputs[size_t(form.y)]);
  if (!name) name = with_shape(form.m, form.n);
  if (!name) name = with_shape(form.n, form.m);
  if (!name) return std::nullopt;
  return NamedProduct{name->parameter, name->argument, ProductPart::kWeightGradient, false};
}

// Of a parameter, or of a state that is kept of one; nothing of others.
// "weights.<parameter>.cast+<parameter>.cast.concat" is a state of several (passes/hoist_weights.h).
std::optional<ProductFinder::Name> ProductFinder::name_of(const Argument& argument) const {
  if (argument.kind == Argument::Kind::kParameter) return Name{argument.name, &argument};
  if (argument.spec.role != Role::kWeights) return name_of_parameter(argument.spec.of);
  std::vector<std::optional<Name>> parts;
  for (size_t begin = 0; begin <= argument.name.size();) {
    size_t end = std::min(argument.name.find('+', begin), argument.name.size());
    parts.push_back(name_of_parameter(parameter_within("." + argument.name.substr(begin, end - begin) + ".")));
    begin = end + 1;
  }
  return parts.size() == 1 ? parts[0] : joined(parts);
}

// With its argument where the graph has it; nothing of no name.
std::optional<ProductFinder::Name> ProductFinder::name_of_parameter(const std::string& name) const {
  if (name.empty()) return std::nullopt;
  ValueId whole = graph_.find_argument(name);
  return Name{name, whole == kNoValue ? nullptr : graph_.argument_of(whole)};
}

// A parameter as the programs of a step read it is called "weights.<parameter>.cast": of the parameters that other
// arguments tell of, the longest within that name.
std::string ProductFinder::parameter_within(const std::string& state) const {
  std::string longest;
  for (const Argument& argument : graph_.arguments()) {
    const std::string& name = argument.kind == Argument::Kind::kParameter ? argument.name : argument.spec.of;
    if (name.size() > longest.size() && state.find("." + name + ".") != state.npos) longest = name;
  }
  return longest;
}

// Whose copy in a low type, share, or view, this is.
std::optional<ProductFinder::Name> ProductFinder::source_of(ValueId value) const {
  constexpr int kMostSteps = 8;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    if (const Argument* argument = graph_.argument_of(value)) return name_of(*argument);
    const Node& node = graph_.nodes()[size_t(graph_.producer(value))];
    if (makes_something_else(node)) return std::nullopt;
    if (std::span<const ValueId> beside = side_by_side(node, value); beside.size() > 1) {
      std::vector<std::optional<Name>> parts;
      for (ValueId part : beside) parts.push_back(source_of(part));
      return joined(parts);
    }
    std::optional<ValueId> source = copied_from(node, value);
    if (!source) return std::nullopt;
    value = *source;
  }
  return std::nullopt;
}

// Nothing where one of the parts has no name.
std::optional<ProductFinder::Name> ProductFinder::joined(std::span<const std::optional<Name>> parts) {
  std::vector<std::string> names;
  for (const std::optional<Name>& part : parts) {
    if (!part) return std::nullopt;
    names.push_back(part->parameter);
  }
  return Name{joined_name(names), parts[0]->argument};
}

// The input that the node has for each output, or the one of its only output's size, beside which it reads scales. A
// norm has two of each, too, and its weights are no copy of anything that it makes; a collective makes a share whole.
std::optional<ValueId> ProductFinder::copied_from(const Node& node, ValueId output) const {
  if (node.op == &op::float8_weights) return node.inputs[weight_of_output(node, output)];
  if (node.op == &op::multi_cast) return side_by_side(node, output)[0];
  auto has_size = [&](ValueId input) {
    return num_elements(graph_.shape(input)) == num_elements(graph_.shape(output));
  };
  if (node.inputs.size() == node.outputs.size()) {
    auto at = std::find(node.outputs.begin(), node.outputs.end(), output) - node.outputs.begin();
    ValueId input = node.inputs[size_t(at)];
    if (has_size(input) || work_class(node) == WorkClass::kCommunication) return input;
    return std::nullopt;
  }
  std::optional<ValueId> source;
  for (ValueId input : node.inputs) {
    if (!has_size(input)) continue;
    if (source || node.outputs.size() > 1) return std::nullopt;
    source = input;
  }
  return source;
}

// Whose gradient this is: it, or what becomes of it, is added to that parameter's sum or read by its update. Of several
// parameters' that lie side by side: those of its slices.
std::optional<ProductFinder::Name> ProductFinder::target_of(ValueId gradient) const {
  std::vector<std::optional<Name>> parts;
  for (int index : users_[size_t(gradient)]) {
    const Node& user = graph_.nodes()[size_t(index)];
    if (user.op == &op::slice || user.op == &op::slice_view) parts.push_back(target_of(user.outputs[0]));
  }
  if (parts.size() > 1) return joined(parts);
  return target_of_whole(gradient);
}

std::optional<ProductFinder::Name> ProductFinder::target_of_whole(ValueId gradient) const {
  constexpr size_t kMostValues = 16;
  std::deque<ValueId> waiting{gradient};
  std::set<ValueId> seen{gradient};
  for (; !waiting.empty() && seen.size() <= kMostValues; waiting.pop_front()) {
    ValueId value = waiting.front();
    int64_t size = num_elements(graph_.shape(value));  // a reduce-scatter leaves a share
    for (const Update& update : graph_.updates())
      if (update.value == value)
        if (std::optional<Name> name = name_of(*graph_.argument_of(update.target))) return name;
    for (int index : users_[size_t(value)]) {
      const Node& user = graph_.nodes()[size_t(index)];
      if (std::optional<Name> name = read_by(user, value)) return name;
      if (makes_something_else(user)) continue;
      // Of a node that takes each of its inputs to an output, that one alone.
      if (user.inputs.size() == user.outputs.size()) {
        for (size_t i = 0; i < user.inputs.size(); ++i)
          if (user.inputs[i] == value && seen.insert(user.outputs[i]).second) waiting.push_back(user.outputs[i]);
      } else if (user.outputs.size() == 1 && num_elements(graph_.shape(user.outputs[0])) == size) {
        if (seen.insert(user.outputs[0]).second) waiting.push_back(user.outputs[0]);
      }
    }
  }
  return std::nullopt;
}

// Optimizers' nodes read a parameter, its gradient and its moments in a row, and others' behind them.
std::optional<ProductFinder::Name> ProductFinder::read_by(const Node& user, ValueId gradient) const {
  auto at = size_t(std::find(user.inputs.begin(), user.inputs.end(), gradient) - user.inputs.begin());
  for (size_t beside : {at + 1, at - 1}) {
    if (beside >= user.inputs.size()) continue;
    const Argument* argument = graph_.argument_of(user.inputs[beside]);
    if (!argument || argument->kind == Argument::Kind::kInput) continue;
    if (num_elements(graph_.shape(argument->value)) != num_elements(graph_.shape(gradient))) continue;
    if (std::optional<Name> name = name_of(*argument)) return name;
  }
  return std::nullopt;
}

std::optional<ProductFinder::Name> ProductFinder::with_shape(int64_t rows, int64_t columns) const {
  for (const Argument& argument : graph_.arguments())
    if (argument.kind == Argument::Kind::kParameter && graph_.shape(argument.value) == Shape{rows, columns})
      return Name{argument.name, &argument};
  return std::nullopt;
}

}  // namespace tokamak
