// The IR: one static graph in SSA form. Nodes stand in execution order; every value is defined once, by a node or as an
// argument of the graph. Passes make a new graph from an old one (graph/rewriter.h) rather than edit links.
#pragma once

#include "graph/argument_spec.h"
#include "graph/attrs.h"
#include "graph/value_ids.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tokamak {

struct OpDef;
class Graph;

/// The part of a training step that a node belongs to.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };

struct Node {
  const OpDef* op = nullptr;
  ValueIds inputs;
  ValueIds outputs;
  Attrs attrs;                        // what it computes, and in which numerics
  std::shared_ptr<const Graph> body;  // of a group, argument i being input i, or as the op says; else null
  Phase phase = Phase::kForward;
  // What one pass decides and another obeys; kernels do not see it.
  bool keep_whole = false;  // flash_attention to decompose_attention
  bool recompute = false;   // choose_recompute to apply_recompute, and to those that must not undo what that did
};

/// An argument of the graph. Inputs change from run to run; parameters and states live as long as the program.
struct Argument {
  enum class Kind : uint8_t { kInput, kParameter, kState };
  Kind kind = Kind::kInput;
  std::string name;
  ValueId value = kNoValue;
  ArgumentSpec spec;
};

/// What is said of an argument of which nobody says more: its role follows from its kind and number of dims.
ArgumentSpec default_spec(Argument::Kind kind, const ValueType& type);

struct Result {
  std::string name;
  ValueId value = kNoValue;
};

/// After the run, the storage of argument `target` (a parameter or a state) holds `value`.
struct Update {
  ValueId target = kNoValue;
  ValueId value = kNoValue;
};

class Graph {
 public:
  explicit Graph(std::string name = "graph") : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void rename(std::string name) { name_ = std::move(name); }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Argument>& arguments() const { return *arguments_; }
  const std::vector<Result>& results() const { return results_; }
  const std::vector<Update>& updates() const { return updates_; }
  int num_values() const { return int(types_.size()); }
  std::span<const ValueType> types() const { return types_; }  // by value
  const ValueType& type(ValueId value) const { return types_[size_t(value)]; }
  const Shape& shape(ValueId value) const { return type(value).shape; }
  DType dtype(ValueId value) const { return type(value).dtype; }

  /// Index of the node that makes the value; -1 for an argument.
  int producer(ValueId value) const { return producers_[size_t(value)]; }
  /// For an argument, itself; else null.
  const Argument* argument_of(ValueId value) const;
  ValueId find_argument(std::string_view name) const;  // kNoValue when there is none
  ValueId find_result(std::string_view name) const;

  ValueId add_argument(Argument::Kind kind, std::string name, ValueType type);
  ValueId add_argument(Argument::Kind kind, std::string name, ValueType type, ArgumentSpec spec);
  /// Of a graph without anything yet: all arguments of another one, with values of the same order.
  void take_arguments(const Graph& from);
  /// Appends a node whose output types are given (builders get them from the op's infer).
  const Node& add_node(Node node, const ValueTypes& output_types);
  /// Makes room for as many values and nodes as another one has.
  void reserve_as(const Graph& other);
  void add_result(std::string name, ValueId value) { results_.push_back({std::move(name), value}); }
  void remove_results() { results_.clear(); }
  void add_update(ValueId target, ValueId value) { updates_.push_back({target, value}); }

 private:
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<ValueType> types_;                                                                  // by value
  std::vector<int> producers_;                                                                    // by value
  std::shared_ptr<std::vector<Argument>> arguments_ = std::make_shared<std::vector<Argument>>();  // copies share them
  std::vector<Result> results_;
  std::vector<Update> updates_;
};

/// For every value, the indices of the nodes that read it, in order (a node once, however often it reads it).
class Users {
 public:
  explicit Users(const Graph& graph);
  size_t size() const { return begin_.size() - 1; }
  std::span<const int> operator[](size_t value) const {
    return std::span(nodes_).subspan(begin_[value], begin_[value + 1] - begin_[value]);
  }

 private:
  std::vector<size_t> begin_;  // by value, and behind the last
  std::vector<int> nodes_;
};
inline Users find_users(const Graph& graph) { return Users(graph); }

/// For every value, whether it leaves the graph as a result or an update.
std::vector<bool> find_escaping(const Graph& graph);

/// Throws InternalError when the graph is not well formed: an operand used before it is defined, an output type that is
/// not what the op infers, an undeclared attribute, an update of the wrong type or of a plain input, a body that does
/// not fit the node or is not of the op's form, a spec that is not one of the argument's kind and type.
void verify(const Graph& graph);

}  // namespace tokamak
