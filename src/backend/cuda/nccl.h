// Ranks that are GPUs, on one machine or several: by NCCL, on streams of the CUDA backend. Each is a process: threads
// of one wait for each other for ever where one frees memory, for which the driver locks the process, while another's
// collective is under way. This header compiles without CUDA and without NCCL. Tests: tests/backend/cuda/nccl.
#pragma once

#include "backend/communicator.h"

#include <filesystem>

namespace tokamak {
class StoreClient;
}

namespace tokamak::cuda {

/// Whether this program was built with NCCL's header,
bool nccl_is_built();
/// and whether libnccl.so.2 opens here.
bool nccl_opens();

struct NcclOptions {
  int device = 0;                // this rank's GPU
  std::filesystem::path cache;   // of compiled kernels (default_cache()); empty: none
  double timeout_seconds = 600;  // of setting up, of one call, and of the work that a call queues outside of recordings
};

/// The communicator 'world' of all ranks that have joined the store, which must outlive it and what is split from it.
/// All ranks call it, each on its own GPU. Operations are queued on the stream that they are given and may be recorded;
/// a recording must end before its communicators. Work of two communicators that may run at the same time must be
/// queued in the same order on all their ranks. What goes wrong in a queue is found by a thread that looks every half
/// second, ends all work of all ranks, and is thrown by check() and by the next call. UserError where NCCL is not built
/// in or does not open.
std::unique_ptr<Communicator> make_nccl_world(StoreClient& store, const NcclOptions& options);

/// The device code that adds pieces as fold_tree says, "tree_sum".
std::string tree_sum_source(DType dtype, std::span<const TreePiece> pieces);

}  // namespace tokamak::cuda
