// A shared library that is opened when a function of it is first called: the program starts without it, fast, and also
// where it is missing. Whoever offers its functions defines them under their own names, each handing its calls on
// (libraries/nvrtc.cpp). Tests: tests/backend/cuda/late_library_test.cpp.
#pragma once

#include <string>

namespace tokamak::cuda {

class LateLibrary {
 public:
  /// Opens `file`, a name that the system looks for ("libnvrtc.so.13"). `remedy`: what to do where that fails.
  LateLibrary(std::string file, std::string remedy);

  bool is_open() const { return handle_ != nullptr; }

  /// The library's function of that name. Throws UserError when the library did not open or has none.
  template <auto* function>
  auto* find(const char* name) const {
    static auto* const found = reinterpret_cast<decltype(function)>(address(name));
    return found;
  }

  /// What the library's functions were read from: "/usr/local/cuda/lib64/libnvrtc.so.13". UserError as above.
  std::string path() const;

 private:
  void* address(const char* name) const;
  void require_open() const;

  std::string file_, remedy_, error_;
  void* handle_;
};

/// For those of the CUDA toolkit, whose sonames end in its major version: `name` is "nvrtc".
LateLibrary open_toolkit_library(const std::string& name);

/// The one behind the functions of nvrtc.h.
const LateLibrary& nvrtc_library();

}  // namespace tokamak::cuda
