// The functions of cuDNN that the front-end calls, under their own names: each is handed on to the library, once that
// is open. A front-end that calls others gets those from the library itself, on which the program then depends.
#include "backend/cuda/cudnn/library.h"

#include "backend/cuda/libraries/late_library.h"

#include <cudnn.h>

namespace tokamak::cuda {
namespace {

const LateLibrary& cudnn_library() {
  static const LateLibrary library("libcudnn.so.9", "install cuDNN 9");
  return library;
}

}  // namespace

bool cudnn_opens() { return cudnn_library().is_open(); }

}  // namespace tokamak::cuda

namespace {

template <auto* function>
auto* find(const char* name) {
  return tokamak::cuda::cudnn_library().find<function>(name);
}

}  // namespace

size_t cudnnGetVersion() { return find<&cudnnGetVersion>("cudnnGetVersion")(); }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return find<&cudnnGetErrorString>("cudnnGetErrorString")(status);
}
void cudnnGetLastErrorString(char* message, size_t max_size) {
  find<&cudnnGetLastErrorString>("cudnnGetLastErrorString")(message, max_size);
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return find<&cudnnCreate>("cudnnCreate")(handle); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return find<&cudnnDestroy>("cudnnDestroy")(handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return find<&cudnnSetStream>("cudnnSetStream")(handle, stream);
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return find<&cudnnGetStream>("cudnnGetStream")(handle, stream);
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  return find<&cudnnBackendCreateDescriptor>("cudnnBackendCreateDescriptor")(type, descriptor);
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return find<&cudnnBackendDestroyDescriptor>("cudnnBackendDestroyDescriptor")(descriptor);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return find<&cudnnBackendFinalize>("cudnnBackendFinalize")(descriptor);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  return find<&cudnnBackendSetAttribute>("cudnnBackendSetAttribute")(descriptor, name, type, count, values);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t asked, int64_t* count, void* values) {
  return find<&cudnnBackendGetAttribute>("cudnnBackendGetAttribute")(descriptor, name, type, asked, count, values);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pointers) {
  return find<&cudnnBackendExecute>("cudnnBackendExecute")(handle, plan, pointers);
}

// Since 9.23; not in the headers of older versions.
extern "C" cudnnStatus_t cudnnGetExecutionPlanWorkspaceSize(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                                            cudnnBackendDescriptor_t pointers, size_t* bytes) {
  return find<&cudnnGetExecutionPlanWorkspaceSize>("cudnnGetExecutionPlanWorkspaceSize")(handle, plan, pointers, bytes);
}
