// What the NCCL communicators of one process share: who watches over them and ends their work when the run fails.
#pragma once

#include "backend/cuda/device.h"
#include "backend/cuda/kernel_compiler.h"
#include "backend/cuda/nccl.h"
#include "base/socket.h"
#include "base/store_client.h"

#include <nccl.h>

#include <deque>
#include <map>
#include <set>

namespace tokamak::cuda {

class Mailbox;

/// Whether what is asked for on it now is recorded instead of run.
bool is_recorded(cudaStream_t queue);

/// Owns an ncclComm_t that several threads may use: the one that queues work, and those that look after it.
class NcclHandle {
 public:
  NcclHandle() = default;
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  /// Begins to join the other ranks; state() tells when that is done. A kernel has at most so many blocks, 0: as NCCL
  /// likes.
  ncclResult_t join(int ranks, const ncclUniqueId& id, int rank, int most_blocks);
  /// `work(comm)`, a call of NCCL, while nobody ends it; ncclInvalidUsage when it has ended.
  template <class Work>
  ncclResult_t call(const Work& work) {
    std::lock_guard lock(mutex_);
    return aborted_ ? ncclInvalidUsage : work(comm_);
  }
  /// ncclInProgress while a call goes on; else what has gone wrong, also in the queue.
  ncclResult_t state();
  /// Ends all of its work on this rank, and waits for that; it is of no more use at once.
  void abort();
  /// What NCCL says of an error.
  std::string describe(ncclResult_t result);

  /// That what was queued so far is to be done within `seconds`; nothing while the queue is recorded.
  void expect(cudaStream_t queue, const std::string& what, double seconds);
  /// What should have been done by now; empty: nothing.
  std::string overdue();

 private:
  struct Expected {
    std::unique_ptr<EventHandle> done;
    std::string what;
    Deadline deadline;
  };
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
  bool aborted_ = false;
  std::mutex expecting_;
  std::deque<Expected> expected_;
  std::vector<std::unique_ptr<EventHandle>> free_events_;
};

class NcclRun {
 public:
  NcclRun(StoreClient& store, const NcclOptions& options);
  ~NcclRun();

  StoreClient& store;
  const NcclOptions options;
  KernelCompiler compiler;

  void add(NcclHandle& handle);
  void remove(NcclHandle& handle);
  void add(Mailbox& mailbox);
  void remove(Mailbox& mailbox);

 private:
  void watch();
  /// What has gone wrong; empty: nothing. Under the mutex.
  std::string trouble();
  void abort_all();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<NcclHandle*, std::jthread> handles_;  // each with who aborts it
  bool closing_ = false;
  int subscription_ = 0;
  std::thread watcher_;
  std::mutex mail_mutex_;
  std::set<Mailbox*> mailboxes_;
  std::jthread releaser_;  // when the run has failed
};

}  // namespace tokamak::cuda
