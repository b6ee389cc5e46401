#include "backend/cuda/codegen/group_source.h"

#include "backend/cuda/codegen/column.h"
#include "backend/cuda/codegen/flat.h"
#include "backend/cuda/codegen/row.h"
#include "ops/group.h"

namespace tokamak::cuda {

GroupCode generate_group(const Node& group, int64_t shared_bytes) {
  GroupBody body = read_group(group);
  if (body.kind == &op::flat) return generate_flat(body);
  if (body.kind == &op::row) return generate_row(body, shared_bytes);
  return generate_column(body);
}

int64_t group_workspace_bytes(const Node& group, int64_t shared_bytes) {
  if (group.op == &op::flat) return 0;
  GroupBody body = read_group(group);
  return body.kind == &op::row ? row_workspace_bytes(body, shared_bytes) : column_workspace_bytes(body);
}

}  // namespace tokamak::cuda
