// An op is written once, as one record of this type; a node points at its record, so there is no list of ops to switch
// over anywhere. docs/add_an_op.md shows how to add one.
#pragma once

#include "graph/graph.h"
#include "graph/operand_types.h"
#include "graph/sharding_rule.h"

#include <map>
#include <span>
#include <string_view>

namespace tokamak {

class GraphBuilder;
struct HostTensor;

/// Operand of a tile kernel: n floats, or one that stands for all of them. `raw` is the operand's storage as it is, for
/// ops that read something other than floats.
struct TileOperand {
  const float* data = nullptr;
  bool uniform = false;
  const void* raw = nullptr;
};

/// What a shape rule or a cost rule sees of a node.
struct NodeSpec {
  const OpDef& op;
  OperandTypes inputs;
  const Attrs& attrs;
  const Graph* body = nullptr;
};

struct Cost {
  double flops = 0;
  double bytes = 0;       // read and written, each operand once
  double link_bytes = 0;  // that a rank sends to others
  double draws = 0;       // of random numbers
};

/// How autocast treats the op: kLow gets bf16 or f16 inputs; kFull reads every float type as it is and computes in f32
/// inside; kFollow runs in the widest type of its inputs.
enum class Autocast : uint8_t { kLow, kFull, kFollow };

/// What the fuse pass may do with it. kOpaque: never part of a group. kView: no work, a new shape for the same bytes.
enum class Fusion : uint8_t { kOpaque, kPointwise, kReduction, kComposite, kView };

struct AttrDef {
  std::string_view name;
  bool required = true;
};

struct OpDef {
  std::string_view name;
  int min_inputs = 1;
  int max_inputs = 1;  // -1: any number
  std::span<const AttrDef> attrs = {};

  /// Output types; throws UserError "[name] expected ..., got ...".
  ValueTypes (*infer)(const NodeSpec&) = nullptr;
  /// Appends nodes that compute, for each input, the gradient of the loss (kNoValue: none), given those of the outputs
  /// (kNoValue: zero). Null: not differentiable, which `no_gradient` must then say why.
  ValueIds (*gradient)(GraphBuilder&, const Node&, std::span<const ValueId> output_grads) = nullptr;
  std::string_view no_gradient = {};
  /// Slow, obvious, in double precision: the truth for backends, passes and gradients.
  void (*reference)(const Node&, std::span<const HostTensor* const> inputs, std::span<HostTensor> outputs) = nullptr;
  /// The same outputs from simpler ops, appended to the builder. Null for primitives.
  ValueIds (*decompose)(GraphBuilder&, const Node&, std::span<const ValueId> inputs) = nullptr;
  /// FLOPs and bytes. Null: one FLOP per output element, every operand once.
  Cost (*cost)(const NodeSpec&, std::span<const ValueType> outputs) = nullptr;

  Autocast autocast = Autocast::kFollow;
  uint32_t low_inputs = ~0u;  // of a kLow op: bit i is set when float input i may be bf16 or f16
  Fusion fusion = Fusion::kOpaque;
  /// Pointwise ops: name of the scalar function in ops/scalar_math.h,
  std::string_view scalar = {};
  /// and the same function over n elements in fp32, the first of which has row-major index `first` in the output.
  void (*tile)(const Node&, std::span<const TileOperand> inputs, int64_t first, int64_t n, float* out) = nullptr;
  /// What a run of it acts on besides its outputs, in a word (a mesh axis, say): no pass drops, duplicates, merges,
  /// moves or computes such a node again, nor puts it into a group, and those that act on the same run in the graph's
  /// order. Null: nothing.
  std::string (*effects)(const Node&) = nullptr;
  /// Of ops in which all ranks of a mesh axis take part, and whose output i is made of input i alone: output `i` of
  /// each rank, in the order of the axis, given their inputs `i`. Such an op acts on its attribute `axis`, of attribute
  /// `size` ranks, and `reference` is that of one rank.
  void (*together)(const Node&, size_t i, std::span<const HostTensor* const> inputs,
                   std::span<HostTensor> outputs) = nullptr;
  /// Of what the op does, cut over a mesh, a rank's part is what.
  Sharding sharding = {};
  /// For every output i, the input whose storage it may take over when that input dies here (-1: none).
  int (*in_place)(const Node&, int output) = nullptr;
  /// Of groups: throws InternalError when the node's body, itself verified, is not of the form that the op's kernels
  /// expect.
  void (*check_body)(const Node&) = nullptr;
};

/// Bytes of every operand once, and `flops_per_output` for each element of the first output.
Cost default_cost(const NodeSpec& spec, std::span<const ValueType> outputs, double flops_per_output = 1);

/// The op's own cost rule or the default one.
Cost node_cost(const Graph& graph, const Node& node);

NodeSpec spec_of(const Graph& graph, const Node& node);

/// The ops with effects that the graph runs, in order, by what they act on.
std::map<std::string, std::vector<const OpDef*>> effects_of(const Graph& graph);

}  // namespace tokamak
