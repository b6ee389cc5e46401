#include "backend/cuda/nccl/nccl_run.h"

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/nccl/mailbox.h"
#include "base/error.h"
#include "base/system.h"

namespace tokamak::cuda {
namespace {

constexpr double kFinalSeconds = 10;
constexpr size_t kMostExpected = 64;  // calls whose end is waited for; what is queued behind them ends after them

Architecture architecture_of(int device) {
  DeviceInfo info = describe_device(device);
  return {info.major, info.minor};
}

}  // namespace

bool is_recorded(cudaStream_t queue) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  TOKAMAK_CUDA(cudaStreamIsCapturing(queue, &status));
  return status != cudaStreamCaptureStatusNone;
}

NcclHandle::~NcclHandle() {
  if (!comm_ || aborted_) return;
  ncclResult_t result = ncclCommFinalize(comm_);
  for (Deadline deadline = deadline_in(kFinalSeconds); result == ncclInProgress && milliseconds_left(deadline) > 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    result = state();
  }
  result == ncclSuccess ? ncclCommDestroy(comm_) : ncclCommAbort(comm_);
}

ncclResult_t NcclHandle::join(int ranks, const ncclUniqueId& id, int rank, int most_blocks) {
  std::lock_guard lock(mutex_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // so that waits can end when a rank is gone
  if (most_blocks > 0) config.maxCTAs = most_blocks;
  return aborted_ ? ncclInvalidUsage : ncclCommInitRankConfig(&comm_, ranks, id, rank, &config);
}

ncclResult_t NcclHandle::state() {
  std::lock_guard lock(mutex_);
  if (aborted_) return ncclInvalidUsage;
  ncclResult_t state = ncclSuccess;
  if (!comm_) return state;
  ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  return asked == ncclSuccess ? state : asked;
}

// NCCL waits here for kernels that are under way, so nobody else may have to wait for this.
void NcclHandle::abort() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(aborted_, true)) return;
  }
  if (comm_) ncclCommAbort(comm_);
}

std::string NcclHandle::describe(ncclResult_t result) {
  std::lock_guard lock(mutex_);
  std::string last = aborted_ || !comm_ ? "" : ncclGetLastError(comm_);
  return last.empty() ? ncclGetErrorString(result) : fmt::format("{} ({})", ncclGetErrorString(result), last);
}

void NcclHandle::expect(cudaStream_t queue, const std::string& what, double seconds) {
  if (is_recorded(queue)) return;
  std::lock_guard lock(expecting_);
  if (expected_.size() >= kMostExpected) return;
  std::unique_ptr<EventHandle> event;
  if (free_events_.empty()) {
    event = std::make_unique<EventHandle>();
  } else {
    event = std::move(free_events_.back());
    free_events_.pop_back();
  }
  event->record(queue);
  expected_.push_back({std::move(event), what, deadline_in(seconds)});
}

std::string NcclHandle::overdue() {
  std::lock_guard lock(expecting_);
  while (!expected_.empty() && cudaEventQuery(expected_.front().done->get()) == cudaSuccess) {
    free_events_.push_back(std::move(expected_.front().done));
    expected_.pop_front();
  }
  if (expected_.empty() || milliseconds_left(expected_.front().deadline) > 0) return "";
  return expected_.front().what;
}

NcclRun::NcclRun(StoreClient& s, const NcclOptions& o)
    : store(s), options(o), compiler(o.device, architecture_of(o.device), o.cache, 1) {
  subscription_ = store.on_failure([this](const std::string&) { abort_all(); });
  watcher_ = std::thread([this] { watch(); });
}

NcclRun::~NcclRun() {
  store.unsubscribe(subscription_);
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void NcclRun::add(NcclHandle& handle) {
  std::lock_guard lock(mutex_);
  handles_[&handle];
}

void NcclRun::remove(NcclHandle& handle) {
  std::unique_lock lock(mutex_);
  auto removed = handles_.extract(&handle);
  lock.unlock();
  if (removed && removed.mapped().joinable()) removed.mapped().join();
}

void NcclRun::add(Mailbox& mailbox) {
  std::lock_guard lock(mail_mutex_);
  mailboxes_.insert(&mailbox);
}

void NcclRun::remove(Mailbox& mailbox) {
  std::lock_guard lock(mail_mutex_);
  mailboxes_.erase(&mailbox);
}

// What goes wrong is told to the store, which tells everyone, this rank's communicators among them. Of a GPU that has
// failed nobody else may tell: this rank's other threads may wait for it in NCCL, also on their way out.
void NcclRun::watch() {
  cudaSetDevice(options.device);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(500), [&] { return closing_; })) {
    std::string why = trouble();
    if (why.empty()) continue;
    lock.unlock();
    store.fail(why);
    lock.lock();
  }
}

std::string NcclRun::trouble() {
  if (std::string failure = device_failure(); !failure.empty()) {
    std::string step = options.progress ? fmt::format(" in step {}", options.progress->report().step) : "";
    return fmt::format("rank {} on {}: GPU {} has failed{}: {}", store.rank(), host_name(), options.device, step,
                       failure);
  }
  for (const auto& [handle, aborter] : handles_) {
    ncclResult_t state = handle->state();
    if (state != ncclSuccess && state != ncclInProgress && state != ncclInvalidUsage)
      return fmt::format("rank {}: NCCL says: {}", store.rank(), handle->describe(state));
    if (std::string overdue = handle->overdue(); !overdue.empty())
      return fmt::format("rank {} has waited {} s for the end of {}", store.rank(), options.timeout_seconds, overdue);
  }
  return "";
}

void NcclRun::abort_all() {
  // Again and again, as a queue that goes on comes to its next wait; and beside NCCL, which waits for the queues.
  if (!releaser_.joinable())
    releaser_ = std::jthread([this](const std::stop_token& done) {
      for (; !done.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
        std::lock_guard lock(mail_mutex_);
        for (Mailbox* mailbox : mailboxes_) mailbox->release();
      }
    });
  // All at once: an abort frees memory, which waits for the kernels of all communicators on the GPU, and those end when
  // theirs is aborted.
  std::lock_guard lock(mutex_);
  for (auto& [handle, aborter] : handles_)
    if (!aborter.joinable()) aborter = std::jthread([one = handle] { one->abort(); });
}

}  // namespace tokamak::cuda
