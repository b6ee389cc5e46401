#include "backend/cuda/codegen/group_source.h"

#include "backend/cuda/codegen/column.h"
#include "backend/cuda/codegen/flat.h"
#include "backend/cuda/codegen/row.h"

namespace tokamak::cuda {

GroupCode generate_group(const Node& group, int64_t shared_bytes) {
  GroupBody body = read_group(group);
  if (body.kind == "flat") return generate_flat(body);
  if (body.kind == "row") return generate_row(body, shared_bytes);
  return generate_column(body);
}

std::string group_source(const Node& group) { return generate_group(group).source; }

}  // namespace tokamak::cuda
