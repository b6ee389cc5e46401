// The functions of NCCL that are used, under their own names.
#include "backend/cuda/libraries/late_library.h"
#include "backend/cuda/nccl.h"

#include <nccl.h>

namespace tokamak::cuda {
namespace {

const LateLibrary& nccl_library() {
  static const LateLibrary library("libnccl.so.2",
                                   "install NCCL, or name its folder in LD_LIBRARY_PATH, or use one GPU");
  return library;
}

}  // namespace

bool nccl_is_built() { return true; }
bool nccl_opens() { return nccl_library().is_open(); }

}  // namespace tokamak::cuda

namespace {

template <auto* function>
auto* find(const char* name) {
  return tokamak::cuda::nccl_library().find<function>(name);
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t result) { return find<&ncclGetErrorString>("ncclGetErrorString")(result); }
const char* ncclGetLastError(ncclComm_t comm) { return find<&ncclGetLastError>("ncclGetLastError")(comm); }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) { return find<&ncclGetUniqueId>("ncclGetUniqueId")(id); }
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return find<&ncclCommInitRankConfig>("ncclCommInitRankConfig")(comm, ranks, id, rank, config);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return find<&ncclCommGetAsyncError>("ncclCommGetAsyncError")(comm, error);
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return find<&ncclCommFinalize>("ncclCommFinalize")(comm); }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return find<&ncclCommDestroy>("ncclCommDestroy")(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return find<&ncclCommAbort>("ncclCommAbort")(comm); }
ncclResult_t ncclGroupStart() { return find<&ncclGroupStart>("ncclGroupStart")(); }
ncclResult_t ncclGroupEnd() { return find<&ncclGroupEnd>("ncclGroupEnd")(); }
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return find<&ncclAllReduce>("ncclAllReduce")(from, to, count, type, op, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return find<&ncclReduceScatter>("ncclReduceScatter")(from, to, count, type, op, comm, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return find<&ncclAllGather>("ncclAllGather")(from, to, count, type, comm, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return find<&ncclBroadcast>("ncclBroadcast")(from, to, count, type, root, comm, stream);
}
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return find<&ncclSend>("ncclSend")(from, count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return find<&ncclRecv>("ncclRecv")(to, count, type, peer, comm, stream);
}
