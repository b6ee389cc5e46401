#include "tests/backend/cuda/mail/fake_queues.h"

#include "backend/cuda/nccl/mailbox.h"

#include <cuda.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>

namespace tokamak::test {
namespace {

// A piece of work: whether it can be done now, and doing it.
struct Work {
  std::function<bool()> is_ready = [] { return true; };
  std::function<void()> run = [] {};
};

struct FakeStream {
  std::deque<Work> waiting;
  int64_t asked = 0, done = 0;
};

struct FakeEvent {
  FakeStream* stream = nullptr;
  int64_t position = 0;
};

std::mutex mutex;
std::set<FakeStream*> streams;
thread_local int this_rank = 0;

FakeStream& of(cudaStream_t stream) { return *reinterpret_cast<FakeStream*>(stream); }
FakeEvent& of(cudaEvent_t event) { return *reinterpret_cast<FakeEvent*>(event); }

void ask(cudaStream_t stream, Work work) {
  std::lock_guard lock(mutex);
  of(stream).waiting.push_back(std::move(work));
  ++of(stream).asked;
}

// In two pieces, between which anything else may happen.
void ask_copy(cudaStream_t stream, void* to, const void* from, size_t bytes) {
  size_t half = bytes / 2;
  ask(stream, {.run = [=] { std::memcpy(to, from, half); }});
  ask(stream, {.run = [=] {
        std::memcpy(static_cast<char*>(to) + half, static_cast<const char*>(from) + half, bytes - half);
      }});
}

uint32_t* word_at(CUdeviceptr address) { return reinterpret_cast<uint32_t*>(address); }

}  // namespace

void act_as_rank(int rank) { this_rank = rank; }

// Some queues are much slower than others.
bool run_queues(std::mt19937& random) {
  std::map<FakeStream*, double> rates;
  for (FakeStream* stream : streams) rates[stream] = std::exp(-std::uniform_real_distribution<double>(0, 8)(random));
  for (std::vector<FakeStream*> ready;; ready.clear()) {
    bool all_done = true;
    for (FakeStream* stream : streams) {
      if (stream->waiting.empty()) continue;
      all_done = false;
      if (stream->waiting.front().is_ready()) ready.push_back(stream);
    }
    if (all_done || ready.empty()) return all_done;
    std::vector<double> weights;
    for (FakeStream* stream : ready) weights.push_back(rates[stream]);
    FakeStream& next = *ready[std::discrete_distribution<size_t>(weights.begin(), weights.end())(random)];
    next.waiting.front().run();
    next.waiting.pop_front();
    ++next.done;
  }
}

void fill(cudaStream_t queue, void* to, int value, int64_t bytes) {
  ask(queue, {.run = [=] { std::memset(to, value, size_t(bytes)); }});
}

void forget_queues() { streams.clear(); }

// Each block adds a part of its sum, at another time.
void add_pieces(cudaStream_t queue, size_t pieces, void** arguments) {
  auto* words = static_cast<const uint64_t*>(arguments[0]);
  for (int n = 0; n < cuda::sums_at_once(pieces); ++n, words += pieces + 3) {
    std::vector<const float*> from;
    for (size_t p = 0; p < pieces; ++p) from.push_back(reinterpret_cast<const float*>(words[p]));
    auto* to = reinterpret_cast<float*>(words[pieces]);
    auto count = int64_t(words[pieces + 1]), blocks = int64_t(words[pieces + 2] >> 32);
    for (int64_t block = 0; block < blocks; ++block)
      ask(queue, {.run = [=] {
            for (int64_t i = block * count / blocks; i < (block + 1) * count / blocks; ++i) {
              float sum = 0;
              for (const float* piece : from) sum += piece[i];
              to[i] = sum;
            }
          }});
  }
}

}  // namespace tokamak::test

using namespace tokamak::test;

extern "C" pid_t __wrap_getpid() { return 1000 + this_rank; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  std::lock_guard lock(mutex);
  auto* made = new FakeStream();
  streams.insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::lock_guard lock(mutex);
  streams.erase(&of(stream));
  delete &of(stream);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new FakeEvent());
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  of(event) = {&of(stream), of(stream).asked};
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  FakeEvent before = of(event);
  ask(stream, {.is_ready = [=] { return before.stream->done >= before.position; }});
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  ask_copy(stream, to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*data, 0x7f, bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) { return std::free(data), cudaSuccess; }
cudaError_t cudaMallocHost(void** data, size_t bytes) { return cudaMalloc(data, bytes); }
cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }
cudaError_t cudaMemGetInfo(size_t*, size_t*) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
cudaError_t cudaHostGetDevicePointer(void** address, void* host, unsigned) {
  *address = host;
  return cudaSuccess;
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* data) {
  std::memcpy(handle, &data, sizeof data);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** data, cudaIpcMemHandle_t handle, unsigned) {
  std::memcpy(data, &handle, sizeof *data);
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void*) { return cudaSuccess; }
CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned) {
  std::vector<CUstreamBatchMemOpParams> all(operations, operations + count);
  auto is_ready = [all] {
    for (const CUstreamBatchMemOpParams& operation : all)
      if (operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 &&
          *word_at(operation.waitValue.address) != operation.waitValue.value)
        return false;
    return true;
  };
  ask(stream, {is_ready, [all] {
                 for (const CUstreamBatchMemOpParams& operation : all)
                   if (operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32)
                     *word_at(operation.writeValue.address) = operation.writeValue.value;
               }});
  return CUDA_SUCCESS;
}

namespace tokamak::cuda {

std::string describe(cudaError_t) { return ""; }
std::string describe(CUresult) { return ""; }
void throw_cuda_error(const char* call, const std::string&) { throw CudaError(call); }

// The function's name says of how many pieces it is.
KernelCompiler::KernelCompiler(int device, Architecture architecture, const std::filesystem::path& cache, int,
                               Makes makes)
    : device_(device), architecture_(architecture), makes_(makes), cache_(cache) {}
KernelCompiler::~KernelCompiler() = default;
std::shared_ptr<DeviceFunction> KernelCompiler::add(const std::string&, const std::string& source) {
  size_t at = source.find("kPieces = ");
  return std::make_shared<DeviceFunction>(source.substr(at + 10, source.find(';', at) - at - 10),
                                          std::shared_future<DeviceFunction::Loaded>());
}
void DeviceFunction::launch_with(cudaStream_t stream, const LaunchShape&, void** arguments) const {
  test::add_pieces(stream, std::stoul(name_), arguments);
}

NcclRun::NcclRun(StoreClient& s, const NcclOptions& o) : store(s), options(o), compiler(0, {9, 0}, {}, 1) {}
NcclRun::~NcclRun() = default;
void NcclRun::add(Mailbox&) {}
void NcclRun::remove(Mailbox&) {}

}  // namespace tokamak::cuda
