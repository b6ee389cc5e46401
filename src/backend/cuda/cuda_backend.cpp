#include "backend/cuda/cuda_backend.h"

#include "backend/cuda/chain_compiler.h"
#include "backend/cuda/cupti.h"
#include "backend/cuda/digest_kernel.h"
#include "backend/cuda/host_copies.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/matmul_library.h"
#include "backend/cuda/matmul_shares.h"
#include "backend/cuda/sensors.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace tokamak::cuda {
namespace {

class DeviceMemory : public Memory {
 public:
  DeviceMemory(int64_t bytes, cudaStream_t queue) : buffer_(bytes) {
    TOKAMAK_CUDA(cudaMemsetAsync(buffer_.get(), 0, size_t(bytes), queue));
  }
  void* data() override { return buffer_.get(); }

 private:
  DeviceBuffer buffer_;
};

// A pinned buffer and what says that the copy into it is done.
struct ReadBuffer {
  explicit ReadBuffer(int64_t bytes) : buffer(bytes) {}
  PinnedBuffer buffer;
  EventHandle done;
};

// Those that are free, for all threads: making one takes as long as a step of generation.
class ReadBuffers {
 public:
  // The smallest that is large enough.
  std::unique_ptr<ReadBuffer> take(int64_t bytes) {
    std::lock_guard lock(mutex_);
    auto best = free_.lower_bound(bytes);
    if (best == free_.end()) return std::make_unique<ReadBuffer>(std::max(bytes, kLeastBytes));
    std::unique_ptr<ReadBuffer> taken = std::move(best->second);
    free_.erase(best);
    return taken;
  }
  void give(std::unique_ptr<ReadBuffer> one) {
    std::lock_guard lock(mutex_);
    int64_t bytes = one->buffer.bytes();
    if (free_.size() < kMost) free_.emplace(bytes, std::move(one));
  }

 private:
  std::mutex mutex_;
  static constexpr int64_t kLeastBytes = 256;
  static constexpr size_t kMost = 1024;
  std::multimap<int64_t, std::unique_ptr<ReadBuffer>> free_;  // by their bytes
};

class PinnedReadback : public Readback {
 public:
  PinnedReadback(const void* from, int64_t bytes, cudaStream_t queue, std::shared_ptr<ReadBuffers> free)
      : bytes_(bytes), free_(std::move(free)), read_(free_->take(bytes)) {
    TOKAMAK_CUDA(cudaMemcpyAsync(read_->buffer.get(), from, size_t(bytes), cudaMemcpyDeviceToHost, queue));
    read_->done.record(queue);
  }
  ~PinnedReadback() override {
    if (cudaEventQuery(read_->done.get()) == cudaSuccess) free_->give(std::move(read_));
  }
  bool ready() const override { return cudaEventQuery(read_->done.get()) == cudaSuccess; }
  std::span<const std::byte> wait() override {
    read_->done.wait();
    return {read_->buffer.get(), size_t(bytes_)};
  }

 private:
  int64_t bytes_;
  std::shared_ptr<ReadBuffers> free_;
  std::unique_ptr<ReadBuffer> read_;
};

class GraphRecording : public Recording {
 public:
  GraphRecording(cudaStream_t queue, const std::function<void()>& work) : queue_(queue) {
    TOKAMAK_CUDA(cudaStreamBeginCapture(queue, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(queue, &graph);
      if (graph) cudaGraphDestroy(graph);
      throw;
    }
    TOKAMAK_CUDA(cudaStreamEndCapture(queue, &graph));
    cudaError_t status = cudaGraphInstantiate(&instance_, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(status, "cudaGraphInstantiate");
  }
  ~GraphRecording() override { cudaGraphExecDestroy(instance_); }
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;

  void replay() override { TOKAMAK_CUDA(cudaGraphLaunch(instance_, queue_)); }

 private:
  cudaStream_t queue_;
  cudaGraphExec_t instance_ = nullptr;
};

class CudaEvent : public StreamEvent {
 public:
  explicit CudaEvent(StreamContexts& streams) : streams_(streams) {}
  void record(int stream) override { event_.record(streams_.at(stream).queue()); }
  void wait(int stream) override { TOKAMAK_CUDA(cudaStreamWaitEvent(streams_.at(stream).queue(), event_.get(), 0)); }

 private:
  StreamContexts& streams_;
  EventHandle event_;
};

class CudaTimeMark : public TimeMark {
 public:
  explicit CudaTimeMark(cudaStream_t queue) : event_(/*timing=*/true) { event_.record(queue); }
  double seconds_since(const TimeMark& begin) const override {
    const auto& first = dynamic_cast<const CudaTimeMark&>(begin);
    first.event_.wait(), event_.wait();
    float ms = 0;
    TOKAMAK_CUDA(cudaEventElapsedTime(&ms, first.event_.get(), event_.get()));
    return 1e-3 * double(ms);
  }

 private:
  EventHandle event_;
};

// Inputs go through pinned memory, so that the copy waits in the queue and not the host.
class InputStage {
 public:
  void copy_in(void* to, const void* from, int64_t bytes, cudaStream_t queue) {
    Staged& staged = staged_[next_++ % kInputs];
    if (staged.used) staged.done.wait();
    if (!staged.buffer || staged.buffer->bytes() < bytes) staged.buffer = std::make_unique<PinnedBuffer>(bytes);
    std::memcpy(staged.buffer->get(), from, size_t(bytes));
    TOKAMAK_CUDA(cudaMemcpyAsync(to, staged.buffer->get(), size_t(bytes), cudaMemcpyHostToDevice, queue));
    staged.done.record(queue);
    staged.used = true;
  }

 private:
  static constexpr size_t kInputs = 12;  // two steps' worth of inputs
  struct Staged {
    std::unique_ptr<PinnedBuffer> buffer;
    EventHandle done;
    bool used = false;
  };
  Staged staged_[kInputs];
  size_t next_ = 0;
};

class CudaTuning : public KernelTuning {
 public:
  explicit CudaTuning(Context& context) : context_(context) {}

  void compile_ahead(const Graph& graph, const Node& node) override {
    try {
      cuda::compile_ahead(context_, graph, node);
    } catch (const std::exception&) {
      // It fails again, with the node's name, when the kernel itself is compiled.
    }
  }
  void expect(const Graph& step, std::span<const double> seconds) override {
    try {
      context_.matmuls().expect(matmul_shares(step, seconds));
    } catch (const std::exception&) {
      // As in compile_ahead.
    }
  }
  std::string choices() const override { return context_.matmuls().choices(); }
  bool adopt_choices(const std::string& text) override { return context_.matmuls().adopt_choices(text); }

 private:
  Context& context_;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(const DeviceInfo& info, const std::filesystem::path& cache, const std::shared_ptr<KernelCompiler>& early)
      : streams_(info, cache, early) {
    others_ = taken_bytes();
  }

  void use_in_this_thread() override { TOKAMAK_CUDA(cudaSetDevice(context_.info.ordinal)); }

  std::unique_ptr<Memory> allocate(int64_t bytes) override {
    return std::make_unique<DeviceMemory>(bytes, context_.queue());
  }

  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override { return compile_on(0, graph, node); }

  std::unique_ptr<Kernel> compile_on(int stream, const Graph& graph, const Node& node) override {
    return make_kernel(streams_.at(stream), graph, node);
  }

  std::unique_ptr<Kernel> compile_digest(std::vector<DigestPiece> pieces) override {
    return make_digest_kernel(context_, pieces);
  }

  Queue queue(int stream) override { return streams_.at(stream).queue(); }

  std::unique_ptr<StreamEvent> make_event() override { return std::make_unique<CudaEvent>(streams_); }

  std::unique_ptr<TimeMark> mark_time(int stream) override {
    return std::make_unique<CudaTimeMark>(streams_.at(stream).queue());
  }

  std::unique_ptr<DeviceTrace> trace_device() override { return trace_by_cupti(); }
  std::unique_ptr<DeviceSensors> open_sensors() override { return cuda::open_sensors(context_.info.ordinal); }

  void end_compiling() override { context_.matmuls().end_tuning(); }
  KernelTuning* tuning() override { return &tuning_; }
  ChainCompiler* chains() override { return context_.info.major >= kHopper ? chains_.get() : nullptr; }

  std::unique_ptr<Memory> allocate_host(int64_t bytes) override { return allocate_pinned(bytes); }
  std::unique_ptr<HostCopies> make_host_copies() override { return copy_beside(streams_); }

  void copy_in(void* to, const void* from, int64_t bytes) override {
    if (bytes == 0) return;
    if (bytes <= kInputsBytes) return stage_.copy_in(to, from, bytes, context_.queue());
    TOKAMAK_CUDA(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyHostToDevice, context_.queue()));
    synchronize();
  }
  void copy_out(void* to, const void* from, int64_t bytes) override {
    TOKAMAK_CUDA(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToHost, context_.queue()));
    synchronize();
  }
  void copy(void* to, const void* from, int64_t bytes) override { copy_on(context_.queue(), to, from, bytes); }
  void copy_on(Queue queue, void* to, const void* from, int64_t bytes) override {
    if (to == from) return;
    TOKAMAK_CUDA(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(queue)));
  }
  std::unique_ptr<Readback> read_later(const void* from, int64_t bytes) override {
    return std::make_unique<PinnedReadback>(from, bytes, context_.queue(), read_buffers_);
  }
  void synchronize() override { TOKAMAK_CUDA(cudaStreamSynchronize(context_.queue())); }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    return std::make_unique<GraphRecording>(context_.queue(), work);
  }
  double time(const std::function<void()>& work) override { return seconds_on_stream(context_.queue(), work); }
  int64_t used_bytes() const override { return taken_bytes() - others_; }
  int64_t free_bytes() const override { return context_.info.memory_bytes - taken_bytes(); }

  Context& context() { return context_; }

 private:
  static constexpr int64_t kInputsBytes = 8 << 20;
  static constexpr int kHopper = 9;  // compute capability

  static int64_t taken_bytes() {
    size_t free = 0, total = 0;
    TOKAMAK_CUDA(cudaMemGetInfo(&free, &total));
    return int64_t(total - free);
  }

  StreamContexts streams_;
  Context& context_ = streams_.at(0);
  CudaTuning tuning_{context_};
  std::unique_ptr<ChainCompiler> chains_ = make_chain_compiler(context_);
  InputStage stage_;
  std::shared_ptr<ReadBuffers> read_buffers_ = std::make_shared<ReadBuffers>();
  int64_t others_ = 0;  // taken before this backend was: the CUDA context, other processes
};

}  // namespace

std::unique_ptr<Backend> make_backend(int ordinal, const std::filesystem::path& cache,
                                      const std::shared_ptr<KernelCompiler>& early) {
  DeviceInfo info = describe_device(ordinal);
  TOKAMAK_CUDA(cudaSetDevice(ordinal));
  return std::make_unique<CudaBackend>(info, cache, early);
}

}  // namespace tokamak::cuda
