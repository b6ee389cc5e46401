#include "backend/cuda/driver.h"

#include "base/error.h"

#include <dlfcn.h>

namespace tokamak::cuda {
namespace {

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (!function) user_error("[cuda] expected a driver with {}; update NVIDIA's driver (525 or newer)", name);
}

Driver open_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    user_error("[cuda] expected NVIDIA's driver library libcuda.so.1, got: {}; install the driver, or use --device=cpu",
               ::dlerror());
  Driver d{};
  find(library, "cuModuleLoadData", d.cuModuleLoadData);
  find(library, "cuModuleUnload", d.cuModuleUnload);
  find(library, "cuModuleGetFunction", d.cuModuleGetFunction);
  find(library, "cuFuncSetAttribute", d.cuFuncSetAttribute);
  find(library, "cuLaunchKernel", d.cuLaunchKernel);
  find(library, "cuTensorMapEncodeTiled", d.cuTensorMapEncodeTiled);
  find(library, "cuGetErrorName", d.cuGetErrorName);
  find(library, "cuGetErrorString", d.cuGetErrorString);
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver opened = open_driver();
  return opened;
}

}  // namespace tokamak::cuda
