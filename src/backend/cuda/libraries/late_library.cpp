#include "backend/cuda/libraries/late_library.h"

#include "base/error.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <link.h>

#include <utility>

namespace tokamak::cuda {

// Its symbols are for all, as those of libraries that a program is linked with: cuDNN finds the toolkit's by name.
LateLibrary::LateLibrary(std::string file, std::string remedy)
    : file_(std::move(file)), remedy_(std::move(remedy)), handle_(::dlopen(file_.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
  if (!handle_) error_ = ::dlerror();
}

void LateLibrary::require_open() const {
  if (!handle_) user_error("[cuda] expected the library {}, got: {}; {}", file_, error_, remedy_);
}

void* LateLibrary::address(const char* name) const {
  require_open();
  void* found = ::dlsym(handle_, name);
  if (!found) user_error("[cuda] expected {} in {}, which has none; {}", name, path(), remedy_);
  return found;
}

std::string LateLibrary::path() const {
  require_open();
  link_map* map = nullptr;
  return ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : file_;
}

LateLibrary open_toolkit_library(const std::string& name) {
  constexpr int kMajor = CUDART_VERSION / 1000;
  return {fmt::format("lib{}.so.{}", name, kMajor),
          fmt::format("install the libraries of the CUDA toolkit {}, or name their folder in LD_LIBRARY_PATH, or use "
                      "--device=cpu",
                      kMajor)};
}

}  // namespace tokamak::cuda
