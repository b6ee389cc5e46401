#include "backend/cuda/kernel_compiler.h"

#include "base/start_threads.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

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

void KernelCompiler::begin_loading() {
  std::lock_guard lock(mutex_);
  makes_ = Makes::kFunctions;
}

std::shared_ptr<DeviceFunction> KernelCompiler::add(const std::string& name, const std::string& source) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Module>& module = modules_[source];
  bool fresh = !module;
  if (fresh) module = std::make_shared<Module>();
  bool wanted = makes_ == Makes::kFunctions && !std::exchange(module->wanted, true);  // since now
  if (fresh)
    tasks_.push_back([this, source, module] { compile(source, *module); });
  else if (wanted && module->compiled)
    tasks_.push_front([this, module] { load(*module); });
  if (fresh || wanted) changed_.notify_all();
  std::shared_ptr<DeviceFunction>& function = functions_[{name, source}];
  if (!function) {
    auto lookup = [name, architecture = architecture_, loaded = module->loaded] {
      DeviceFunction::Loaded found{.early = can_launch_early(architecture)};
      TOKAMAK_CUDA(cuModuleGetFunction(&found.function, loaded.get(), name.c_str()));
      return found;
    };
    function = std::make_shared<DeviceFunction>(name, std::async(std::launch::deferred, lookup).share());
  }
  return function;
}

KernelCompiler::Progress KernelCompiler::progress() {
  std::lock_guard lock(mutex_);
  Progress progress{.added = int64_t(modules_.size())};
  for (const auto& [source, module] : modules_) progress.compiled += module->compiled;
  return progress;
}

void KernelCompiler::finish() {
  std::unique_lock lock(mutex_);
  for (const auto& [source, module] : modules_) {
    changed_.wait(lock, [&one = *module] { return one.compiled; });
    if (module->error) std::rethrow_exception(module->error);
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

void KernelCompiler::compile(const std::string& source, Module& module) {
  std::string code;
  std::exception_ptr error;
  try {
    code = code_for(source);
  } catch (...) {
    error = std::current_exception();
  }
  std::unique_lock lock(mutex_);
  module.code = std::move(code), module.error = error, module.compiled = true;
  bool wanted = module.wanted;
  lock.unlock();
  changed_.notify_all();
  if (wanted) load(module);
}

void KernelCompiler::load(Module& module) {
  try {
    if (module.error) std::rethrow_exception(module.error);
    TOKAMAK_CUDA(cudaSetDevice(device_));
    CUmodule loaded = nullptr;
    TOKAMAK_CUDA(cuModuleLoadData(&loaded, module.code.c_str()));
    module.code = {};
    std::unique_lock lock(mutex_);
    loaded_modules_.push_back(loaded);
    lock.unlock();
    module.promise.set_value(loaded);
  } catch (...) {
    module.promise.set_exception(std::current_exception());
  }
}

}  // namespace tokamak::cuda
