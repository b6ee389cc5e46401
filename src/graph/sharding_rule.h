// How the work of an op may be cut over the ranks of a mesh axis: one rule in its record, from which the shard pass
// derives layouts and collectives. (The idea of factors is that of Shardy, openxla.org/shardy.)
//
// A rule names the indices that run over the dims of a node's inputs and outputs, its *factors*: a matmul has m, k and
// n. Cut along m or n, each rank computes a part of the result; along k, a term of it. A dim may be the product of
// several factors, slowest first (the packed projection's last is 3 x heads x width of a head), and a factor of size 1
// may be left out. Tests: tests/ops/sharding_rules_test.cpp, for every op against its reference.
#pragma once

#include "base/short_list.h"
#include "graph/mesh.h"
#include "graph/type.h"
#include "graph/value_ids.h"

#include <span>
#include <vector>

namespace tokamak {

class Attrs;
class Graph;
class GraphBuilder;
struct Node;
struct NodeSpec;

struct Factor {
  /// What an output that lacks the factor is when it is cut: on each rank the same, or to be added up, or the largest
  /// of all ranks'.
  enum class Rest : uint8_t { kSame, kSum, kMax };

  int64_t size = 1;
  Rest rest = Rest::kSame;
  bool whole = false;     // it must not be cut
  bool placed = false;    // cut, a rank must know where its part begins: see Sharding::place
  bool mirrored = false;  // placed, and cut in two mirrored blocks or not at all
  bool numbered = false;  // cut, it must know of what its part is: see Sharding::number
};

using DimFactors = ShortList<int, 4>;            // indices of factors, the slowest first
using OperandFactors = std::vector<DimFactors>;  // of each dim

using InputSet = ShortList<int, 4>;

struct ShardingRule {
  ShortList<Factor, 8> factors;
  std::vector<OperandFactors> inputs, outputs;
  /// Sets of inputs in which, taken together, the op is linear: terms of sums give terms of the sum of the results.
  std::vector<InputSet> linear;
  /// The result is the sum of what the op gives for each of its inputs alone: one that is whole must not be with one
  /// that is cut, or it would count once a rank.
  bool sums_inputs = false;

  int add(Factor factor) {
    factors.push_back(factor);
    return int(factors.size()) - 1;
  }
  int apart(int64_t size) { return add({size}); }
  int whole(int64_t size) { return add({.size = size, .whole = true}); }
  int summed(int64_t size) { return add({size, Factor::Rest::kSum}); }
};

/// How an axis cuts a factor: into `blocks` x axis.size pieces of `length`, of which the rank has piece `coordinate`,
/// i32[], of each block; of every second one, where they are mirrored, piece axis.size - 1 - `coordinate`.
struct PlacedCut {
  int factor = -1;
  int64_t blocks = 1, length = 1;
  bool mirrored = false;
  MeshAxis axis;
  ValueId coordinate = -1;
};

struct Sharding {
  /// Null: as its class says (ops/sharding_rules.h).
  ShardingRule (*rule)(const NodeSpec&, std::span<const ValueType> outputs) = nullptr;
  /// Changes the attributes to those of a node with these parts as inputs and outputs. Null: they do not depend on it.
  void (*of_part)(Attrs&, std::span<const Shape> inputs, std::span<const Shape> outputs) = nullptr;
  /// Appends what computes a part, where a `placed` factor is cut: by one axis alone, of one block or, where the factor
  /// is `mirrored`, of two that are. `part` is the node as if there were only that part; `inputs` are its operands;
  /// `numbered` are the cuts of factors that are, along other axes. Ranks may send each other what they need for it.
  /// Null where no factor is placed.
  ValueIds (*place)(GraphBuilder&, const Node& part, std::span<const ValueId> inputs, const PlacedCut& cut,
                    std::span<const PlacedCut> numbered) = nullptr;
  /// The same where only `numbered` factors are cut, of which any may be, each along any axes and in any blocks.
  ValueIds (*number)(GraphBuilder&, const Node& part, std::span<const ValueId> inputs,
                     std::span<const PlacedCut> cuts) = nullptr;
  /// Of a composite op, whose outputs it gives as OpDef::decompose does: from ops that are cut, where `ranks` have
  /// equal parts of a dim of its inputs that the rule keeps whole. Null: decompose does that.
  ValueIds (*in_parts)(GraphBuilder&, const Node&, std::span<const ValueId> inputs, int64_t ranks) = nullptr;
};

/// One axis's cut of a dim, as in Cut (graph/argument_spec.h), in terms of a factor of the dim.
struct FactorCut {
  int factor = -1;
  int64_t blocks = 1;  // of the factor
  bool mirrored = false;
  bool operator==(const FactorCut&) const = default;
};

/// The factor in which a cut of the dim into blocks x size parts falls; factor -1 when it falls in none as a whole.
FactorCut find_factor(const ShardingRule& rule, const DimFactors& dim, int64_t blocks, int64_t size);

/// Where an operand has the factor: its dim, and of how many blocks the dim is when the factor is of one. dim -1:
/// nowhere.
struct FactorPlace {
  int64_t dim = -1;
  int64_t blocks = 1;
};
FactorPlace place_of(const ShardingRule& rule, const OperandFactors& operand, int factor);

}  // namespace tokamak
