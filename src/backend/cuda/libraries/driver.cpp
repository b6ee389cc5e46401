// The few functions of NVIDIA's driver library that the runtime library does not offer, under their own names.
#include "backend/cuda/libraries/late_library.h"

#include <cuda.h>

namespace {

template <auto* function>
auto* find(const char* name) {
  static const tokamak::cuda::LateLibrary library("libcuda.so.1",
                                                  "install NVIDIA's driver (525 or newer), or use --device=cpu");
  return library.find<function>(name);
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return find<&cuModuleLoadData>("cuModuleLoadData")(module, image);
}
CUresult cuModuleUnload(CUmodule module) { return find<&cuModuleUnload>("cuModuleUnload")(module); }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return find<&cuModuleGetFunction>("cuModuleGetFunction")(function, module, name);
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return find<&cuFuncSetAttribute>("cuFuncSetAttribute")(function, attribute, value);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  return find<&cuLaunchKernelEx>("cuLaunchKernelEx")(config, function, arguments, extra);
}
CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  return find<&cuStreamBatchMemOp>("cuStreamBatchMemOp_v2")(stream, count, operations, flags);
}
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t dims, void* base,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  return find<&cuTensorMapEncodeTiled>("cuTensorMapEncodeTiled")(map, type, dims, base, sizes, strides, box,
                                                                 element_strides, interleave, swizzle, promotion, fill);
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  return find<&cuGetErrorName>("cuGetErrorName")(error, name);
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  return find<&cuGetErrorString>("cuGetErrorString")(error, text);
}
