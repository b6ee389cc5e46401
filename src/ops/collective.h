// Collectives: ops in which all ranks of a mesh axis take part, at the same node of the same graph. Their attributes
// are the axis, its size, and the dims that are cut as Cut (graph/layout.h) says: each of `blocks` equal blocks of the
// dim into one part a rank. They act on their axis: no pass may drop, repeat or reorder them. The shard pass appends
// them, after differentiation, so that they need no gradients. Tests: tests/ops/collective_test.cpp.
#pragma once

#include "graph/mesh.h"
#include "graph/op_def.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef all_reduce;      // x -> the sum or the maximum of all ranks' x
extern const OpDef reduce_scatter;  // x -> of the sum of all ranks' x, this rank's part of dim
extern const OpDef all_gather;      // a part of dim -> all of it
extern const OpDef all_to_all;      // a part of from_dim -> all of it, but of dim this rank's part
extern const OpDef part;            // x, a rank's coordinate f32[] -> its part of dim. No collective.
}  // namespace op

enum class Combine : uint8_t { kSum, kMax };

/// Where a dim is cut.
struct CutDim {
  int64_t dim = 0;
  int64_t blocks = 1;
};

ValueId all_reduce(GraphBuilder& g, ValueId x, const MeshAxis& axis, Combine reduction);
ValueId reduce_scatter(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim to);
ValueId all_gather(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim from);
ValueId all_to_all(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim from, CutDim to);
ValueId part(GraphBuilder& g, ValueId x, ValueId coordinate, int64_t size, CutDim to);

}  // namespace tokamak
