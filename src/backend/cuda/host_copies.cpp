#include "backend/cuda/host_copies.h"

#include "base/large_pages.h"

namespace tokamak::cuda {
namespace {

// Pages that are real and large when the driver pins them: while it pins it keeps other threads' launches waiting, a
// second for 2 GB of pages that it has to make itself.
class PinnedMemory : public Memory {
 public:
  explicit PinnedMemory(int64_t bytes) : pages_(bytes) {
    if (!pages_.data()) return;
    pages_.touch(0, bytes);
    cudaError_t status = cudaHostRegister(pages_.data(), size_t(bytes), cudaHostRegisterDefault);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // it is no fault of later calls
      return;
    }
    check_cuda(status, "cudaHostRegister");
    is_pinned_ = true;
  }
  ~PinnedMemory() override {
    if (is_pinned_) cudaHostUnregister(pages_.data());
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  bool is_pinned() const { return is_pinned_; }
  void* data() override { return pages_.data(); }

 private:
  LargePages pages_;
  bool is_pinned_ = false;
};

class CopiesBeside : public HostCopies {
 public:
  explicit CopiesBeside(StreamContexts& streams) : streams_(streams) { end_.record(copies_.get()); }
  // Memory that they go to may be freed next.
  ~CopiesBeside() override { cudaStreamSynchronize(copies_.get()); }
  CopiesBeside(const CopiesBeside&) = delete;
  CopiesBeside& operator=(const CopiesBeside&) = delete;

  void begin() override {
    begin_.record(streams_.at(0).queue());
    TOKAMAK_CUDA(cudaStreamWaitEvent(copies_.get(), begin_.get(), 0));
  }
  void copy(void* to, const void* from, int64_t bytes) override {
    TOKAMAK_CUDA(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToHost, copies_.get()));
  }
  void end() override { end_.record(copies_.get()); }
  void wait() override { end_.wait(); }

  // A recording gets a node of its own, which looks at each launch for the event's last record.
  void come_before(int stream) override {
    cudaStream_t queue = streams_.at(stream).queue();
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    TOKAMAK_CUDA(cudaStreamIsCapturing(queue, &status));
    bool is_recorded = status != cudaStreamCaptureStatusNone;
    unsigned flags = is_recorded ? cudaEventWaitExternal : cudaEventWaitDefault;
    TOKAMAK_CUDA(cudaStreamWaitEvent(queue, end_.get(), flags));
  }

 private:
  StreamContexts& streams_;
  StreamHandle copies_;
  EventHandle begin_, end_;
};

}  // namespace

std::unique_ptr<Memory> allocate_pinned(int64_t bytes) {
  auto memory = std::make_unique<PinnedMemory>(bytes);
  if (!memory->is_pinned()) return nullptr;
  return memory;
}

std::unique_ptr<HostCopies> copy_beside(StreamContexts& streams) { return std::make_unique<CopiesBeside>(streams); }

}  // namespace tokamak::cuda
