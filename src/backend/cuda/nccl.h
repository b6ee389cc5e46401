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
  /// Memory of each communicator through which ranks of one machine exchange tensors by their copy engines: of what is
  /// split from the world at once, of the world by the first call that may need it; 0: NCCL does all.
  int64_t mailbox_bytes = 64 << 20;
  /// What a rank must have for another one in a call, or in those that go out as one, that it is sent so: copy engines
  /// take longer to begin.
  int64_t least_mail_bytes = 128 << 10;
  std::shared_ptr<RankProgress> progress = nullptr;  // of this rank; null: nobody looks
};

/// The communicator 'world' of all ranks that have joined the store, which must outlive it and what is split from it.
/// All ranks call it, each on its own GPU. Operations are queued on the stream that they are given and may be recorded;
/// a recording must end before its communicators. Calls of one communicator on several queues must be ordered by
/// events; work of two communicators that may run at the same time must be queued in the same order on all their ranks.
/// What goes wrong in a queue is found by a thread that looks every half second, ends all work of all ranks, and is
/// thrown by check() and by the next call. UserError where NCCL is not built in or does not open.
std::unique_ptr<Communicator> make_nccl_world(StoreClient& store, const NcclOptions& options);

/// The device code "rank_sum", which adds the pieces of several sums as fold_tree says,
std::string tree_sum_source(DType dtype, std::span<const TreePiece> pieces);
/// and in the order of ranks, rounded once.
std::string rank_sum_source(DType dtype, int ranks);
/// How many sums of so many pieces, at most 500, one launch of it takes (nccl/rank_sum_launch.h).
int sums_at_once(size_t pieces);

}  // namespace tokamak::cuda
