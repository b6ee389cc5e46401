// The functions of cuBLASLt that are used, under their own names. The library has over half a gigabyte.
#include "backend/cuda/libraries/late_library.h"

#include <cublasLt.h>

namespace {

template <auto* function>
auto* find(const char* name) {
  static const tokamak::cuda::LateLibrary library = tokamak::cuda::open_toolkit_library("cublasLt");
  return library.find<function>(name);
}

}  // namespace

size_t cublasLtGetVersion() { return find<&cublasLtGetVersion>("cublasLtGetVersion")(); }
const char* cublasLtGetStatusName(cublasStatus_t status) {
  return find<&cublasLtGetStatusName>("cublasLtGetStatusName")(status);
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return find<&cublasLtGetStatusString>("cublasLtGetStatusString")(status);
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return find<&cublasLtCreate>("cublasLtCreate")(handle); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return find<&cublasLtDestroy>("cublasLtDestroy")(handle); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return find<&cublasLtMatmulDescCreate>("cublasLtMatmulDescCreate")(operation, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  return find<&cublasLtMatmulDescDestroy>("cublasLtMatmulDescDestroy")(operation);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  return find<&cublasLtMatmulDescSetAttribute>("cublasLtMatmulDescSetAttribute")(operation, attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  return find<&cublasLtMatrixLayoutCreate>("cublasLtMatrixLayoutCreate")(layout, type, rows, columns, leading);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return find<&cublasLtMatrixLayoutDestroy>("cublasLtMatrixLayoutDestroy")(layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  return find<&cublasLtMatrixLayoutSetAttribute>("cublasLtMatrixLayoutSetAttribute")(layout, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return find<&cublasLtMatmulPreferenceCreate>("cublasLtMatmulPreferenceCreate")(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return find<&cublasLtMatmulPreferenceDestroy>("cublasLtMatmulPreferenceDestroy")(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  return find<&cublasLtMatmulPreferenceSetAttribute>("cublasLtMatmulPreferenceSetAttribute")(preference, attribute,
                                                                                             value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
  return find<&cublasLtMatmulAlgoGetHeuristic>("cublasLtMatmulAlgoGetHeuristic")(handle, operation, a, b, c, d,
                                                                                 preference, asked, found, count);
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                       cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  return find<&cublasLtMatmulAlgoCheck>("cublasLtMatmulAlgoCheck")(handle, operation, a, b, c, d, algorithm, result);
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  return find<&cublasLtMatmul>("cublasLtMatmul")(handle, operation, alpha, a, a_layout, b, b_layout, beta, c, c_layout,
                                                 d, d_layout, algorithm, workspace, workspace_bytes, stream);
}
