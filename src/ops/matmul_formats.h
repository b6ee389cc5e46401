// In which number formats a product is computed, as data on its node: the types of operands and result are those of its
// values, and the attributes say what those do not. A policy decides (passes/format_policy.h); kernels, their keys and
// prices obey. Tests: tests/ops/matmul_formats_test.cpp
//
//   matmul(%a: bf16, %b: bf16) : bf16                              sums in f32
//   matmul(%a: f32, %b: f32) {tf32=true} : f32                     f32 operands may be rounded to TF32
//   matmul(%a: bf16, %b: f32) {result="f32"} : f32                 said where it is not the type of both operands
//   matmul(%a, %b, %scale_a, %scale_b) {accumulator="f16"} : ...   what a and b stand for is so many times as much
#pragma once

#include "graph/op_def.h"
#include "ops/number_format.h"

namespace tokamak {

struct MatmulFormats {
  NumberFormat a = NumberFormat::kF32, b = NumberFormat::kF32;
  DType accumulator = DType::kF32;  // of the sums
  DType result = DType::kF32;       // of the product, before what a group does to it
  bool operator==(const MatmulFormats&) const = default;
};

/// Both operands in this format, sums in f32, and the result as the operands are stored.
MatmulFormats uniform_formats(NumberFormat format);

/// Of a matmul node. UserError "[matmul] ..." where the operands differ in type and nothing says the result's.
MatmulFormats matmul_formats(const NodeSpec& matmul);

/// Sets the attributes that say what the operands' types do not, and no others.
void set_formats(Attrs& attrs, const MatmulFormats& formats);

/// The format of an operand of any op with an attribute tf32.
NumberFormat operand_format(const Graph& graph, const Node& node, size_t input);

}  // namespace tokamak
