// What an argument of a graph is to a run, beside the type that it is stored in. It is decided where the argument is
// made, and printed with the graph; checkpoints, weight decay and generation go by it, and nobody by names.
// Tests: tests/graph/argument_spec_test.cpp.
#pragma once

#include "graph/type.h"

#include <optional>
#include <string>
#include <vector>

namespace tokamak {

/// Legend: V vocabulary, T time, C width.
enum class Role : uint8_t {
  kData,             // an input, new at each run
  kEmbedding,        // parameter (V, C), looked up by token; tied, the last layer's matrix as well
  kPosition,         // parameter (T, C), looked up by position
  kClassifier,       // parameter (V, C), the last layer's own matrix
  kValueTable,       // parameter (V, out), looked up by token, whose columns go on apart from each other: heads
  kColumn,           // parameter (in, out), a matrix whose outputs go on apart from each other: heads, hidden units
  kRow,              // parameter (in, out), a matrix that adds such parts up
  kMatrix,           // any other parameter of two dims or more
  kColumnBias,       // parameter (out), added to what a kColumn matrix gives
  kVector,           // any other parameter: gains, biases
  kMoment,           // state that the optimizer keeps of a parameter
  kGradientSum,      // state: a parameter's gradients so far, or the loss's sum; nothing between steps
  kReducedGradient,  // state: a parameter's gradient of the step, added up over ranks; nothing between steps
  kLossScaling,      // state
  kCache,            // state: what generation remembers of earlier tokens
  kResidual,         // state: the residual stream between two stages of a pipeline, or its gradient
  kWeights,          // state: a parameter as the programs of a step read it
  kActivation,       // state: what a program of a micro-batch leaves to a later one
  kState,            // any other state
};

std::string_view role_name(Role role);  // "embedding"
std::optional<Role> find_role(std::string_view name);

bool is_parameter(Role role);
/// Parameters to which weight decay applies.
bool is_matrix(Role role);
/// States that mean nothing to another run.
bool is_scratch(Role role);

/// A dimension of `blocks` equal blocks, each of which a mesh axis cuts into `size` equal parts: the rank with
/// coordinate r has part r of every block; `mirrored`, it has part size - 1 - r of every second one. Several axes may
/// cut one dimension; each is described as if it were alone. A `term` is no cut: each rank of the axis has a tensor of
/// that shape, and their sum counts.
struct Cut {
  std::string axis;
  int64_t size = 1;
  int64_t dim = 0;
  int64_t blocks = 1;  // an even number where they are mirrored
  bool mirrored = false;
  bool term = false;  // then dim and blocks say nothing
  bool operator==(const Cut&) const = default;
};

/// "data:2@0 tensor:4@1x3": axis data cuts dim 0 into 2 parts, tensor each of the 3 blocks of dim 1 into 4; "@1x2m":
/// of 2 blocks, mirrored; "data:2+": ranks have terms.
std::string print_cuts(const std::vector<Cut>& cuts);
/// The inverse; nothing when the text is none of those.
std::optional<std::vector<Cut>> parse_cuts(std::string_view text);

/// Whether what the first of two cuts of one dim cuts are blocks within the parts of the other, mirrored ones in pairs.
bool lies_within(const Cut& inner, const Cut& outer);
/// Whether these cuts of a tensor can be: dims that it has, and a place of its own for each among the parts of a dim.
bool can_cut(const Shape& whole, const std::vector<Cut>& cuts);
/// Shape of a rank's share, and of the tensor that a share belongs to.
Shape part_shape(Shape whole, const std::vector<Cut>& cuts);
Shape whole_shape(Shape part, const std::vector<Cut>& cuts);

/// Zeros that a tensor is stored with along one dim: behind all of its own, or behind those of each of `parts` equal
/// parts.
struct Padding {
  int64_t dim = 0;
  int64_t parts = 1;
  bool computed = true;  // a step computes with them, as with tokens that are none; else it reads the rest (first_rows)
  bool operator==(const Padding&) const = default;
};

/// "1x3": dim 1, behind each of 3 parts; "0x4-": which a step does not read.
std::string print_padding(const Padding& padding);
/// The inverse; nothing when the text is none of those.
std::optional<Padding> parse_padding(std::string_view text);

struct ArgumentSpec {
  Role role = Role::kData;
  std::string of;           // the parameter that a moment or a gradient sum belongs to
  Shape global;             // as the model and checkpoint files know it; stored it may be padded
  int64_t blocks = 1;       // matrices that stand side by side in the last dim (q, k and v): cut there, each is cut
  std::vector<Cut> cuts;    // what is stored is the share of one rank of a mesh; at most one for each axis
  bool transposed = false;  // of kColumn, kRow and kMatrix: it is (out, in)
  int64_t unit = 1;         // of what is apart (kColumn, kRow, ...): so many columns stay together, as those of a head
  Padding padding = {};     // says something where it is stored larger than `global`
  bool operator==(const ArgumentSpec&) const = default;
};

/// Of a kColumn or kRow matrix the dim of what is apart, its outputs or its inputs; tensor ranks cut it.
inline int64_t apart_dim(const ArgumentSpec& spec) { return (spec.role == Role::kColumn) != spec.transposed ? 1 : 0; }

/// Of a tensor with an apart_dim, a kColumnBias, a kValueTable or a kCache of several dims: the dim of what is apart;
/// else nothing.
std::optional<int64_t> dim_of_units(const ArgumentSpec& spec);

/// Whether a tensor of shape `global` may be stored as `stored`: the same, or larger where the padding is.
bool can_store(const Shape& stored, const Shape& global, const Padding& padding);

/// In how many equal parts, of what lies side by side in memory, a tensor of this shape has its padding.
int64_t parts_padded(const Shape& stored, const Padding& padding);

}  // namespace tokamak
