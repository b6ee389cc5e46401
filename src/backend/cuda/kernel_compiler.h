// Makes device functions from source text: in the background on all cores, each text once, results kept on disk.
#pragma once

#include "backend/cuda/check.h"
#include "backend/cuda/code_cache.h"
#include "backend/cuda/nvrtc.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace tokamak::cuda {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  int shared_bytes = 0;  // dynamic
};

/// One __global__ function of a module that may still be under compilation.
class DeviceFunction {
 public:
  struct Loaded {
    CUfunction function = nullptr;
    /// It is launched while the kernel before it still runs, for which it waits itself (kernels/begin_kernel.cuh).
    bool early = false;
  };

  DeviceFunction(std::string name, std::shared_future<Loaded> loaded)
      : name_(std::move(name)), loaded_(std::move(loaded)) {}

  const std::string& name() const { return name_; }
  /// Waits for the compiler; throws what it has thrown.
  CUfunction get() const { return loaded_.get().function; }

  /// Arguments must have exactly the types of the function's parameters.
  template <typename... Args>
  void launch(cudaStream_t stream, const LaunchShape& shape, Args... args) const {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&args))..., nullptr};
    launch_with(stream, shape, pointers);
  }
  void launch_with(cudaStream_t stream, const LaunchShape& shape, void** arguments) const;

 private:
  std::string name_;
  std::shared_future<Loaded> loaded_;
};

class KernelCompiler {
 public:
  /// What is made of a source: functions on the device, or only their code, which needs no device.
  enum class Makes : uint8_t { kFunctions, kCode };

  /// `cache`: folder that CodeCache works in; empty: none. `threads`: 0 for one per core; fewer where the system
  /// refuses more, UserError when it refuses all.
  KernelCompiler(int device, Architecture architecture, const std::filesystem::path& cache, int threads = 0,
                 Makes makes = Makes::kFunctions);
  ~KernelCompiler();
  KernelCompiler(const KernelCompiler&) = delete;
  KernelCompiler& operator=(const KernelCompiler&) = delete;

  bool is_for(int device, Architecture architecture) const {
    return device == device_ && architecture == architecture_;
  }

  /// From now on functions are made of what is added. What was added before has to be added again.
  void begin_loading();

  /// The function `name` (extern "C") of `source`. Returns at once; equal sources are compiled once. As long as only
  /// code is made, nobody may wait for the function.
  std::shared_ptr<DeviceFunction> add(const std::string& name, const std::string& source);

  /// How many sources were added, and how many of them are compiled.
  struct Progress {
    int64_t added = 0, compiled = 0;
  };
  Progress progress();
  /// Waits until all are compiled; throws what the compiler has thrown.
  void finish();

 private:
  // Of one source.
  struct Module {
    bool wanted = false;    // on the device
    bool compiled = false;  // there is code, or an error
    std::string code;
    std::exception_ptr error;
    std::promise<CUmodule> promise;
    std::shared_future<CUmodule> loaded = promise.get_future().share();
  };

  void work();
  void compile(const std::string& source, Module& module);
  void load(Module& module);
  std::string code_for(const std::string& source);

  int device_;
  Architecture architecture_;
  Makes makes_;
  CodeCache cache_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::map<std::string, std::shared_ptr<Module>> modules_;  // by source
  std::map<std::pair<std::string, std::string>, std::shared_ptr<DeviceFunction>> functions_;
  std::vector<CUmodule> loaded_modules_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tokamak::cuda
