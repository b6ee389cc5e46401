// AdamW's step of one tensor with moments of 8 bits, and which tensors can have them.
#pragma once

#include "graph/graph.h"

namespace tokamak {

namespace op {
extern const OpDef adamw8bit;
}  // namespace op

/// Elements of a block of a tensor whose last dim is `columns`: the most up to 256 that divide it, so that no block
/// spans two rows.
int64_t block_length(int64_t columns);

/// Types of a moment of a tensor of this shape: codes u8 (..., blocks of a row, their length), and for each block what
/// they are multiplied by, f32 (..., blocks of a row).
ValueType moment_codes(const Shape& shape);
ValueType moment_scales(const Shape& shape);

}  // namespace tokamak
