// Ops that move elements, or only give them another shape.
#pragma once

#include "graph/op_def.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef reshape, transpose, slice, slice_view, pad, concat;
}  // namespace op

/// slice_view is a slice that shows the bytes of what it is of: its indices lie one behind the other there, and begin
/// at a multiple of so many bytes, as kernels expect of every value.
inline constexpr int64_t kViewAlignment = 64;
bool may_view_slice(const NodeSpec& slice);
/// Bytes before the first element of a slice or a view of one.
int64_t slice_offset(const NodeSpec& slice);

ValueId reshape(GraphBuilder& g, ValueId a, Shape shape);  // one dim may be -1; returns `a` when nothing changes
ValueId transpose(GraphBuilder& g, ValueId a, std::vector<int64_t> perm);
ValueId slice(GraphBuilder& g, ValueId a, int64_t dim, int64_t begin, int64_t size);
/// With zeros; each of `parts` equal parts of dim 0 behind itself, where there are several: kernels know one alone,
/// which is what a rank has where they are divided over ranks.
ValueId pad(GraphBuilder& g, ValueId a, int64_t dim, int64_t before, int64_t after, int64_t parts = 1);
ValueId concat(GraphBuilder& g, ValueIds values, int64_t dim);

}  // namespace tokamak
