#include "backend/cuda/nccl.h"
#include "base/error.h"

namespace tokamak::cuda {

bool nccl_is_built() { return false; }
bool nccl_opens() { return false; }

std::unique_ptr<Communicator> make_nccl_world(StoreClient&, const NcclOptions&) {
  user_error(
      "[mesh] expected a program with NCCL for ranks that are GPUs, got one without; install NCCL with its header and "
      "build again");
}

}  // namespace tokamak::cuda
