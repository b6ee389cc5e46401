#include "ops/all_ops.h"

namespace tokamak {

const OpDef* find_op(std::string_view name) {
  for (const OpDef* op : all_ops())
    if (op->name == name) return op;
  return nullptr;
}

}  // namespace tokamak
