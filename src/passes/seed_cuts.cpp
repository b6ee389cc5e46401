#include "passes/seed_cuts.h"

#include "config/mesh_config.h"
#include "ops/first_rows.h"
#include "passes/step_mesh.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace tokamak {
namespace {

// Pieces that lie side by side, of those that `context` cuts the time into: attention is balanced where a rank has an
// early and a late one (ops/context_attention.h).
int64_t parts_of_time(const Mesh& mesh) { return mesh.size(kContextAxis) == 1 ? 1 : 2 * mesh.size(kContextAxis); }

// Of what blocks add up, (..., B, T, C), the part of one of the tensor ranks: of B, whose parts lie side by side in
// memory, or of T where they, with data, do not divide B.
Cut cut_of_residual(const Shape& shape, const Mesh& mesh, bool own_inputs) {
  int64_t size = mesh.size(kTensorAxis), parts_of_batch = own_inputs ? 1 : mesh.size(kDataAxis);
  auto time = int64_t(shape.size()) - 2;
  bool by_batch = shape[size_t(time) - 1] % (parts_of_batch * size) == 0;
  return by_batch ? Cut{kTensorAxis, size, time - 1, parts_of_batch}
                  : Cut{kTensorAxis, size, time, parts_of_time(mesh)};
}

class Seeder {
 public:
  Seeder(const Graph& graph, const PassContext& context) : graph_(graph), context_(context), mesh_(context.mesh) {
    for (const Argument& argument : graph.arguments()) by_name_.emplace(argument.name, &argument);
  }

  std::vector<Cut> cuts_of(const Argument& argument) {
    cuts_.clear();
    shape_ = graph_.shape(argument.value);
    if (argument.kind == Argument::Kind::kInput || argument.spec.role == Role::kResidual) {
      if (shape_.size() >= 2 && !context_.own_inputs) add(kDataAxis, 0, 1);
      if (shape_.size() >= 2) add(kContextAxis, 1, 2, true);
      if (argument.spec.role == Role::kResidual && context_.sequence) add_cut_of_residual();
      return cuts_;
    }
    const Argument& parameter = parameter_of(argument);
    dims_ = int64_t(graph_.shape(parameter.value).size());
    if (argument.spec.role != Role::kMoment || lies_as(graph_.shape(parameter.value)))
      cut_matrix(argument.spec, parameter.spec);
    bool is_whole = context_.updates_whole && context_.updates_whole(parameter);
    if (is_term(argument.spec, is_whole))
      cuts_.push_back({.axis = kDataAxis, .size = mesh_.size(kDataAxis), .term = true});
    is_whole |= is_of_rows_or_columns(argument, graph_.shape(parameter.value));
    if (is_cut_by_zero(argument.spec.role) && !is_whole) add_somewhere(kDataAxis), add_somewhere(kContextAxis);
    return cuts_;
  }

 private:
  // Whether the state has what a parameter of that shape has, or a number of each of equal pieces of its rows, or such
  // pieces as one dim more.
  bool lies_as(const Shape& parameter) const {
    if (shape_ == parameter) return true;
    if (parameter.size() != 2 || shape_.size() < 2 || shape_[0] != parameter[0]) return false;
    return shape_.size() == 2 ? parameter[1] % shape_[1] == 0 : shape_[1] * shape_[2] == parameter[1];
  }

  // What is kept of a matrix's rows or columns: little, of which an update reads all.
  bool is_of_rows_or_columns(const Argument& argument, const Shape& parameter) const {
    return argument.spec.role == Role::kMoment && shape_.size() < parameter.size();
  }

  // The one that a state belongs to; of no state, itself.
  const Argument& parameter_of(const Argument& state) const {
    auto found = by_name_.find(state.spec.of);
    return found == by_name_.end() ? state : *found->second;
  }

  void cut_matrix(const ArgumentSpec& spec, const ArgumentSpec& of_parameter) {
    switch (of_parameter.role) {
      case Role::kEmbedding:
      case Role::kClassifier: add(kTensorAxis, 0, 1); break;
      case Role::kValueTable: add(kTensorAxis, 1, 1); break;
      case Role::kColumn:
      case Role::kRow:
        if (shape_.size() < 2 || apart_dim(of_parameter) == 1)
          add(kTensorAxis, std::min<int64_t>(int64_t(shape_.size()) - 1, 1), of_parameter.blocks);
        else
          add(kTensorAxis, 0, of_parameter.blocks);
        break;
      case Role::kCache:
        if (shape_.size() < 2) break;  // what text goes on from
        [[fallthrough]];
      case Role::kColumnBias: add(kTensorAxis, int64_t(shape_.size()) - 1, spec.blocks); break;
      default: break;
    }
  }

  bool is_cut_by_zero(Role role) const {
    if (role == Role::kMoment || role == Role::kReducedGradient) return context_.zero >= 1;
    if (role == Role::kGradientSum) return context_.zero >= 2;
    return is_parameter(role) && (context_.zero >= 3 || context_.gathers_once);
  }

  // What a rank has added up of a parameter's gradients, for the update to add to the others'. With slots the graph
  // says where ranks' sums are added.
  bool is_term(const ArgumentSpec& spec, bool is_whole) const {
    return spec.role == Role::kGradientSum && !spec.of.empty() && context_.slots == 1 &&
           (adds_gradients_once(context_.zero) || is_whole) && mesh_.size(kDataAxis) > 1;
  }

  bool add(const char* axis, int64_t dim, int64_t blocks, bool mirrored = false) {
    return add({axis, mesh_.size(axis), dim, blocks, mirrored});
  }
  bool add(Cut cut) {
    if (cut.size == 1) return true;
    cuts_.push_back(std::move(cut));
    if (can_cut(shape_, cuts_)) return true;
    cuts_.pop_back();
    return false;
  }

  // So that stages of a pipeline keep and send what they have between blocks.
  void add_cut_of_residual() {
    if (shape_.size() >= 3) add(cut_of_residual(shape_, mesh_, context_.own_inputs));
  }

  // Along the first dim that can be cut, within the parts that other axes have left there. Pieces of rows that are a
  // dim more than the parameter has stay whole.
  void add_somewhere(const char* axis) {
    size_t dims = std::min(shape_.size(), context_.slots == 1 ? std::max<size_t>(size_t(dims_), 1) : 1);
    for (size_t dim = 0; dim < dims; ++dim) {
      int64_t blocks = 1;
      for (const Cut& cut : cuts_)
        if (cut.dim == int64_t(dim)) blocks = std::max(blocks, cut.blocks * cut.size);
      if (add(axis, int64_t(dim), blocks)) return;
    }
  }

  const Graph& graph_;
  const PassContext& context_;
  const Mesh& mesh_;
  std::unordered_map<std::string_view, const Argument*> by_name_;
  Shape shape_;
  int64_t dims_ = 0;  // of the parameter that it belongs to
  std::vector<Cut> cuts_;
};

}  // namespace

std::map<ValueId, std::vector<Cut>> seed_cuts(const Graph& graph, const PassContext& context) {
  std::map<ValueId, std::vector<Cut>> cuts;
  Seeder seeder(graph, context);
  for (const Argument& argument : graph.arguments())
    if (std::vector<Cut> of_argument = seeder.cuts_of(argument); !of_argument.empty())
      cuts[argument.value] = std::move(of_argument);
  return cuts;
}

namespace {

// Whether rows that are added to a parameter would let ZeRO cut it.
bool may_have_rows(const Argument& parameter, const PassContext& context) {
  bool is_whole = context.updates_whole && context.updates_whole(parameter);
  return (context.zero >= 3 || context.gathers_once) && context.slots == 1 && !is_whole;
}

int64_t zero_ranks(const PassContext& context) {
  return context.mesh.size(kDataAxis) * context.mesh.size(kContextAxis);
}

// The argument, where it is read as it is or without the rows that are added to it.
const Argument* parameter_read(const Graph& graph, ValueId value) {
  if (int producer = graph.producer(value); producer >= 0) {
    const Node& node = graph.nodes()[size_t(producer)];
    return node.op == &op::first_rows ? graph.argument_of(node.inputs[0]) : nullptr;
  }
  return graph.argument_of(value);
}

int64_t parts_of_rows(const std::vector<Cut>& cuts) {
  auto of_rows =
      std::find_if(cuts.begin(), cuts.end(), [](const Cut& cut) { return cut.axis == kTensorAxis && cut.dim == 0; });
  return of_rows == cuts.end() ? 1 : of_rows->size * of_rows->blocks;
}

bool is_table(Role role) { return role == Role::kEmbedding || role == Role::kClassifier; }

}  // namespace

Undivided undivided_rows(const Graph& graph, const Argument& parameter, const PassContext& context) {
  const Shape& shape = graph.shape(parameter.value);
  bool has_blocks = shape.size() == 1 && parameter.spec.blocks > 1;
  bool has_units_added = shape != parameter.spec.global && !is_table(parameter.spec.role);
  if (!may_have_rows(parameter, context) || shape.empty() || has_blocks || has_units_added) return {};
  Undivided rows{zero_ranks(context)};
  int64_t left = rows.ranks;
  std::vector<Cut> cuts = Seeder(graph, context).cuts_of(parameter);
  for (const Cut& cut : cuts)
    if (cut.axis != kTensorAxis) left /= cut.size;
  rows.parts = parts_of_rows(cuts);
  bool are_added = rows.parts == 1 || (context.rows_in_parts && !is_table(parameter.spec.role));
  return left > 1 && are_added ? rows : Undivided{};
}

AddedRows added_rows(const Graph& graph, const Argument& state) {
  if (state.spec.global.empty() || state.spec.padding.computed) return {};
  ValueId of = graph.find_argument(state.spec.of);
  if (of == kNoValue || is_table(graph.argument_of(of)->spec.role)) return {};
  return {graph.shape(state.value)[0] - state.spec.global[0], state.spec.padding.parts};
}

int64_t rows_multiple(const Graph& graph, const Argument& table, const PassContext& context) {
  int64_t ranks = zero_ranks(context), tensor = context.mesh.size(kTensorAxis);
  bool is_cut = is_table(table.spec.role) && may_have_rows(table, context) && tensor > 1;
  bool divides = graph.shape(table.value)[1] % ranks == 0 || context.target.vocab_multiple % (ranks * tensor) == 0;
  return is_cut && !divides ? ranks * tensor : 1;
}

std::map<ValueId, std::vector<Cut>> seed_residual(const Graph& graph, const Mesh& mesh, bool own_inputs) {
  std::map<ValueId, std::vector<Cut>> cuts;
  if (mesh.size(kTensorAxis) == 1) return cuts;
  for (const Node& node : graph.nodes())
    for (ValueId input : node.inputs) {
      const Argument* argument = parameter_read(graph, input);
      if (!argument || node.phase != Phase::kForward) continue;
      Role role = argument->spec.role;
      const Shape& shape = graph.shape(node.outputs[0]);
      if ((role != Role::kRow && role != Role::kEmbedding) || shape.size() < 3) continue;
      cuts[node.outputs[0]] = {cut_of_residual(shape, mesh, own_inputs)};
    }
  return cuts;
}

bool keeps_parameters_cut(std::string_view axis) { return axis == kTensorAxis; }

}  // namespace tokamak
