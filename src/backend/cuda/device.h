// One GPU: what it is, and the stream on which all work of a backend runs.
#pragma once

#include "backend/cuda/check.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/nvrtc.h"

namespace tokamak::cuda {

/// Owns a CUDA stream.
class StreamHandle {
 public:
  StreamHandle();
  /// None.
  explicit StreamHandle(std::nullptr_t) {}
  ~StreamHandle();
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Owns a CUDA event; `timing` for measuring with it.
class EventHandle {
 public:
  explicit EventHandle(bool timing = false);
  ~EventHandle();
  EventHandle(const EventHandle&) = delete;
  EventHandle& operator=(const EventHandle&) = delete;
  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream);
  void wait() const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// Seconds that the work enqueued on the stream by `work` takes; waits.
double seconds_on_stream(cudaStream_t stream, const std::function<void()>& work);

/// Memory of the device that is freed with its owner; not zeroed.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(int64_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();
  void* get() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// Host memory that the device copies from and to without a detour.
class PinnedBuffer {
 public:
  explicit PinnedBuffer(int64_t bytes);
  ~PinnedBuffer();
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  std::byte* get() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace tokamak::cuda
