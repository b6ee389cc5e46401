#include "backend/cuda/host_copies.h"

namespace tokamak::cuda {
namespace {

class PinnedMemory : public Memory {
 public:
  explicit PinnedMemory(std::byte* data) : data_(data) {}
  ~PinnedMemory() override { cudaFreeHost(data_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  void* data() override { return data_; }

 private:
  std::byte* data_;
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
  void* data = nullptr;
  cudaError_t status = cudaMallocHost(&data, size_t(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it is no fault of later calls
    return nullptr;
  }
  check_cuda(status, "cudaMallocHost");
  return std::make_unique<PinnedMemory>(static_cast<std::byte*>(data));
}

std::unique_ptr<HostCopies> copy_beside(StreamContexts& streams) { return std::make_unique<CopiesBeside>(streams); }

}  // namespace tokamak::cuda
