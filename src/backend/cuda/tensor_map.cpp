#include "backend/cuda/tensor_map.h"

#include "backend/cuda/check.h"

namespace tokamak::cuda {

CUtensorMap tensor_map(const void* base, DType dtype, const std::array<int64_t, 3>& sizes,
                       const std::array<int, 3>& box) {
  CUtensorMap map;
  cuuint64_t size[] = {cuuint64_t(sizes[0]), cuuint64_t(sizes[1]), cuuint64_t(sizes[2])};
  auto bytes = cuuint64_t(dtype_bytes(dtype));
  cuuint64_t strides[] = {size[0] * bytes, size[0] * size[1] * bytes};  // of all dims but the first
  cuuint32_t boxes[] = {cuuint32_t(box[0]), cuuint32_t(box[1]), cuuint32_t(box[2])}, each[] = {1, 1, 1};
  auto type = is_float8(dtype)        ? CU_TENSOR_MAP_DATA_TYPE_UINT8
              : dtype == DType::kBF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                      : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  auto swizzle = box[0] * bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B;
  TOKAMAK_CUDA(cuTensorMapEncodeTiled(&map, type, 3, const_cast<void*>(base), size, strides, boxes, each,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

}  // namespace tokamak::cuda
