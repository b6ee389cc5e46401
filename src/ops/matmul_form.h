// A matmul with what is done to the product before it is stored, as passes make it and the planner and backends read
// it; the body of a fused_matmul is its text form. With mm = matmul(a, b), y is one of
//
//   mm, or mm as f32                    the product, of 16-bit operands in f32 without rounding it
//   mm + bias                           bias: a vector of N
//   addend + mm                         addend: a matrix of y's type; y may lie where it does
//   f(mm), f(mm + bias), f(mm, operand) f: any pointwise function, operand: a matrix of the product's type
//
// A function's result may be stored in eight bits, times f32[] an input, instead: y is cast(f * input). Beside y a
// function's argument (mm or mm + bias) may be stored, and the sums of y over all rows. What a function
// reads is rounded as if it came from memory. The operand a may be what a row group makes of other inputs, as a norm:
// a node `row` in the body, before the product. Tests: tests/ops/matmul_form_test.cpp
#pragma once

#include "ops/group_body.h"
#include "ops/matmul_formats.h"

#include <optional>

namespace tokamak {

/// The row group that makes the operand a.
struct MatmulPrologue {
  GroupBody rows;            // its arguments and results are counted from 0
  std::vector<int> inputs;   // of each of its arguments, the position among the node's inputs
  std::vector<int> outputs;  // of each of its results, the position among the node's outputs; -1: it is a
};

struct MatmulForm {
  // Positions among the node's inputs; -1: there is none.
  int a = 0, b = 1;  // with a prologue, a is -1
  int scale_a = -1, scale_b = -1;
  int bias = -1;
  int addend = -1;
  int operand = -1;
  int narrow_scale = -1;  // what the function's result is multiplied by before it becomes eight bits
  // Positions among its outputs.
  int argument = -1;  // what the function is applied to
  int y = 0;
  int sums = -1;     // f32, N elements
  Shape sums_shape;  // its shape

  bool trans_a = false, trans_b = false;
  MatmulFormats formats;                   // of the product alone
  DType output = DType::kF32;              // of the product, or the sum, as it is stored or as the function reads it
  DType narrow = DType::kF8E4M3;           // of y, with a narrow_scale
  int64_t batch = 1, m = 0, n = 0, k = 0;  // batch times op(a) (m, k) times op(b) (k, n)
  /// A flat group over (batch * m, n) with one result: of input 0, its argument, and input 1, the operand.
  std::optional<GroupBody> function;
  std::optional<MatmulPrologue> prologue;

  /// Whether the function is this op, of the argument, or of the operand and the argument.
  bool applies(const OpDef& op) const;
};

/// Of a matmul, a fused_matmul or the product of a row_block, whose operands are its first inputs; throws
/// InternalError, naming the op, for a body of another form.
MatmulForm read_matmul(const Graph& graph, const Node& node);

/// Of a matmul alone, as its node has it.
MatmulForm plain_form(const Graph& graph, const Node& matmul);

/// The body of a fused_matmul with these inputs. Sizes follow from the types, and so does what of the formats is not
/// said by attributes.
std::shared_ptr<const Graph> make_body(const MatmulForm& form, const ValueTypes& input_types);

/// Whether a function may contain the op: it works on one element at a time and has a scalar function.
bool is_scalar_op(const OpDef& op);

}  // namespace tokamak
