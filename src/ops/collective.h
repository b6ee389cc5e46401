// Collectives: ops in which all ranks of a mesh axis take part, at the same node of the same graph. Their attributes
// are the axis, its size, and the dims that are cut as Cut (graph/argument_spec.h) says: each of `blocks` equal blocks
// of the dim into one part a rank. They act on their axis: no pass may drop, repeat or reorder them. The shard pass
// appends them, after differentiation, so that they need no gradients. Those with x0, x1, ... do the same with several
// tensors of one type, of any shapes, at once, dims and blocks being lists:
//
//   %4, %5 = reduce_scatter(%2, %3) {axis="data", blocks=[1,3], dims=[0,1], size=4} : f32[8,4], f32[16]
//
// Sums with `ordered` are those of one binary tree over the ranks, a power of two of them: the lower half and the upper
// half, each added in the same way, each addition rounded to the type (Communicator::ordered_all_reduce). The order of
// others is the library's.
//
// Tests: tests/ops/collective_test.cpp.
#pragma once

#include "graph/mesh.h"
#include "graph/op_def.h"
#include "graph/reduction.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef all_reduce;      // x0, x1, ... -> of each the sum or the maximum of all ranks'
extern const OpDef reduce_scatter;  // x0, x1, ... -> of the sum of all ranks', this rank's part of the dim
extern const OpDef all_gather;      // x0, x1, ...: parts of a dim -> all of it
extern const OpDef all_to_all;      // a part of from_dim -> all of it, but of dim this rank's part
extern const OpDef permute;         // x -> that of the rank `step` before this one, around the axis
extern const OpDef part;            // x, a rank's coordinate f32[] -> its part of dim. No collective.
}  // namespace op

/// Where a dim is cut.
struct CutDim {
  int64_t dim = 0;
  int64_t blocks = 1;
};

/// Of a reduce_scatter's or all_gather's attributes, one for each input. Absent blocks are 1.
std::vector<CutDim> cut_dims(const Attrs& attrs);
void set_cut_dims(Attrs& attrs, const std::vector<CutDim>& at);
/// Of an all_to_all's or part's attributes, and where an all_to_all's input is cut.
CutDim cut_dim(const Attrs& attrs);
CutDim from_dim(const Attrs& attrs);

/// A whole as a cut sees it: (outer, parts, inner), of which a part has the elements (all, its index, all).
struct DimParts {
  int64_t outer, parts, inner;
};
DimParts parts_of(const Shape& whole, CutDim at, int64_t parts);

/// The whole with the parts of every second block in reverse order: cut so, it gives each rank what a mirrored cut
/// (graph/argument_spec.h) of x would; and what such parts give when they are gathered becomes x again.
ValueId mirror_parts(GraphBuilder& g, ValueId x, CutDim at, int64_t parts);

/// Of an all_reduce's or reduce_scatter's attributes: whether its sum is one in order.
bool is_ordered(const Attrs& attrs);

ValueId all_reduce(GraphBuilder& g, ValueId x, const MeshAxis& axis, Reduction reduction);
ValueId ordered_all_reduce(GraphBuilder& g, ValueId x, const MeshAxis& axis);
ValueId reduce_scatter(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim to);
ValueId ordered_reduce_scatter(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim to);
ValueId all_gather(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim from);
ValueId all_to_all(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim from, CutDim to);
ValueId permute(GraphBuilder& g, ValueId x, const MeshAxis& axis, int64_t step);
ValueId part(GraphBuilder& g, ValueId x, ValueId coordinate, int64_t size, CutDim to);

}  // namespace tokamak
