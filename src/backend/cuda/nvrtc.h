// Device code from source text: NVIDIA's run-time compiler, with the project's own device headers
// (backend/cuda/kernels/*.cuh, ops/scalar_math.h) at hand under their names. Needs no GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tokamak::cuda {

struct Architecture {
  int major = 9, minor = 0;
};

/// Machine code for the architecture, or PTX where the compiler is older than the device. Throws InternalError with the
/// compiler's log and the source when the text does not compile.
std::string compile_device_code(const std::string& source, Architecture architecture);

/// Whatever decides what compile_device_code gives: texts, options, compiler version. For naming cached results.
std::string device_code_key(const std::string& source, Architecture architecture);

/// Text of a file that was embedded at build time, by its name below src/ ("backend/cuda/kernels/embedding.cu").
std::string_view embedded_source(std::string_view name);

}  // namespace tokamak::cuda
