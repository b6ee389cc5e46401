#include "backend/cuda/device.h"

#include "base/error.h"

#include <algorithm>
#include <utility>

namespace tokamak::cuda {

StreamHandle::StreamHandle() { TOKAMAK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
StreamHandle::~StreamHandle() {
  if (stream_) cudaStreamDestroy(stream_);
}

EventHandle::EventHandle(bool timing) {
  TOKAMAK_CUDA(cudaEventCreateWithFlags(&event_, timing ? cudaEventDefault : cudaEventDisableTiming));
}
EventHandle::~EventHandle() { cudaEventDestroy(event_); }
void EventHandle::record(cudaStream_t stream) { TOKAMAK_CUDA(cudaEventRecord(event_, stream)); }
void EventHandle::wait() const { TOKAMAK_CUDA(cudaEventSynchronize(event_)); }

double seconds_on_stream(cudaStream_t stream, const std::function<void()>& work) {
  EventHandle begin(true), end(true);
  begin.record(stream);
  work();
  end.record(stream);
  end.wait();
  float milliseconds = 0;
  TOKAMAK_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
  return double(milliseconds) * 1e-3;
}

DeviceBuffer::DeviceBuffer(int64_t bytes) : bytes_(bytes) {
  cudaError_t status = cudaMalloc(&data_, size_t(std::max<int64_t>(bytes, 1)));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it is no fault of later calls
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    user_error(
        "[memory] expected {} MiB on the GPU, it has {} of {} MiB left; try a smaller --train.batch "
        "(--rows of `generate`), --compile.memory_budget_gib, or free what other processes hold (nvidia-smi)",
        bytes >> 20, free >> 20, total >> 20);
  }
  check_cuda(status, "cudaMalloc");
}
DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
DeviceBuffer::~DeviceBuffer() {
  if (data_) cudaFree(data_);
}

PinnedBuffer::PinnedBuffer(int64_t bytes) : bytes_(bytes) {
  void* data = nullptr;
  TOKAMAK_CUDA(cudaMallocHost(&data, size_t(std::max<int64_t>(bytes, 1))));
  data_ = static_cast<std::byte*>(data);
}
PinnedBuffer::~PinnedBuffer() { cudaFreeHost(data_); }

}  // namespace tokamak::cuda
