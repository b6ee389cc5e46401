#include "backend/cuda/kernel_compiler.h"

#include "base/error.h"
#include "base/start_threads.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

namespace tokamak::cuda {
namespace {

constexpr int kStaticSharedLimit = 48 << 10;  // above it a function must ask

// From Hopper on; recorded launches keep it with drivers for CUDA 12.3 and later.
bool can_launch_early(Architecture architecture) {
  int version = 0;
  return architecture.major >= 9 && cudaDriverGetVersion(&version) == cudaSuccess && version >= 12030;
}

}  // namespace

void DeviceFunction::launch_with(cudaStream_t stream, const LaunchShape& s, void** arguments) const {
  auto [function, starts_early] = loaded_.get();
  if (s.shared_bytes > kStaticSharedLimit)
    TOKAMAK_CUDA(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, s.shared_bytes));
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = s.grid.x, config.gridDimY = s.grid.y, config.gridDimZ = s.grid.z;
  config.blockDimX = s.block.x, config.blockDimY = s.block.y, config.blockDimZ = s.block.z;
  config.sharedMemBytes = unsigned(s.shared_bytes);
  config.hStream = stream;
  config.attrs = &early;
  config.numAttrs = starts_early ? 1 : 0;
  CUresult status = cuLaunchKernelEx(&config, function, arguments, nullptr);
  if (status != CUDA_SUCCESS)
    throw_cuda_error("cuLaunchKernelEx",
                     fmt::format("kernel {}, grid ({}, {}, {}), block {}, {} bytes of shared memory: {}", name_,
                                 s.grid.x, s.grid.y, s.grid.z, s.block.x, s.shared_bytes, describe(status)));
}

KernelCompiler::KernelCompiler(int device, Architecture architecture, const std::filesystem::path& cache, int threads,
                               Makes makes)
    : device_(device), architecture_(architecture), makes_(makes), cache_(cache) {
  if (threads <= 0) threads = std::max(1, int(std::thread::hardware_concurrency()));
  threads_ = start_threads(threads, [this](int) { work(); });
}

KernelCompiler::~KernelCompiler() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  for (CUmodule module : loaded_modules_) cuModuleUnload(module);
}

std::shared_ptr<DeviceFunction> KernelCompiler::add(const std::string& name, const std::string& source) {
  std::lock_guard lock(mutex_);
  auto [module, fresh] = modules_.try_emplace(source);
  if (fresh) {
    auto task = std::make_shared<std::packaged_task<CUmodule()>>([this, source] { return build(source); });
    module->second = task->get_future().share();
    tasks_.push_back([task] { (*task)(); });
    changed_.notify_one();
  }
  std::shared_ptr<DeviceFunction>& function = functions_[{name, source}];
  if (!function) {
    auto lookup = [name, architecture = architecture_, built = module->second] {
      DeviceFunction::Loaded found{.early = can_launch_early(architecture)};
      TOKAMAK_CUDA(cuModuleGetFunction(&found.function, built.get(), name.c_str()));
      return found;
    };
    function = std::make_shared<DeviceFunction>(name, std::async(std::launch::deferred, lookup).share());
  }
  return function;
}

KernelCompiler::Progress KernelCompiler::progress() {
  std::lock_guard lock(mutex_);
  Progress progress;
  for (const auto& [source, module] : modules_) {
    ++progress.added;
    if (module.wait_for(std::chrono::seconds(0)) == std::future_status::ready) ++progress.compiled;
  }
  return progress;
}

void KernelCompiler::require_cached() {
  std::unique_lock lock(mutex_);
  auto modules = modules_;
  lock.unlock();
  for (const auto& [source, module] : modules) {
    module.get();
    if (cache_.find(device_code_name(source, architecture_)).empty())
      user_error(
          "[cache] expected to read the code that was written to the cache, found none; look at the folder's "
          "owner, mode and free space");
  }
}

void KernelCompiler::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !tasks_.empty() || closing_; });
    if (closing_) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

std::string KernelCompiler::code_for(const std::string& source) {
  std::string name = device_code_name(source, architecture_);
  std::string code = cache_.find(name);
  if (!code.empty()) return code;
  code = compile_device_code(source, architecture_);
  cache_.put(name, code);
  return code;
}

CUmodule KernelCompiler::build(const std::string& source) {
  std::string code = code_for(source);
  if (makes_ == Makes::kCode) return nullptr;
  TOKAMAK_CUDA(cudaSetDevice(device_));
  CUmodule module = nullptr;
  TOKAMAK_CUDA(cuModuleLoadData(&module, code.c_str()));
  std::lock_guard lock(mutex_);
  loaded_modules_.push_back(module);
  return module;
}

}  // namespace tokamak::cuda
