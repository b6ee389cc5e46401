#include "ops/pointwise_op.h"

#include "ops/movement.h"
#include "ops/reduce.h"

namespace tokamak {

ValueTypes infer_pointwise(const NodeSpec& spec) {
  Shape shape;
  bool wide = false;
  for (const ValueType& type : spec.inputs) {
    shape = broadcast_shapes(shape, type.shape, spec.op.name);
    wide |= type.dtype == DType::kF32 || type.dtype == DType::kI32 || type.dtype != spec.inputs[0].dtype;
  }
  return {{wide ? DType::kF32 : spec.inputs[0].dtype, shape}};
}

ValueId sum_to_shape(GraphBuilder& builder, ValueId value, const Shape& shape) {
  const Shape from = builder.shape(value);
  if (from == shape) return value;
  std::vector<int64_t> dims;
  size_t extra = from.size() - shape.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (i < extra || (shape[i - extra] == 1 && from[i] != 1)) dims.push_back(int64_t(i));
  return reshape(builder, reduce_sum(builder, value, dims, true), shape);
}

void for_each_broadcast(const Shape& shape, std::span<const HostTensor* const> inputs,
                        const std::function<void(int64_t, std::span<const int64_t>)>& body) {
  std::vector<std::vector<int64_t>> strides;
  for (const HostTensor* input : inputs) strides.push_back(broadcast_strides(input->shape(), shape));
  std::vector<int64_t> index(shape.size(), 0), at(inputs.size(), 0);
  int64_t count = num_elements(shape);
  for (int64_t i = 0; i < count; ++i) {
    body(i, at);
    for (size_t d = shape.size(); d-- > 0;) {
      ++index[d];
      for (size_t k = 0; k < at.size(); ++k) at[k] += strides[k][d];
      if (index[d] < shape[d]) break;
      for (size_t k = 0; k < at.size(); ++k) at[k] -= strides[k][d] * shape[d];
      index[d] = 0;
    }
  }
}

namespace detail {

// A pointwise op may write over any operand of the output's own type; the caller checks that.
int in_place_any(const Node&, int) { return 0; }

}  // namespace detail
}  // namespace tokamak
