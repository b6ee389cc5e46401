#include "graph/shape.h"

#include "base/error.h"

namespace tokamak {

void Shape::too_many_dims() { user_error("[shape] expected a tensor of at most {} dims, got more", kMaxDims); }

}  // namespace tokamak
