// Device code from source text: NVIDIA's run-time compiler, with the project's own device headers
// (backend/cuda/kernels/*.cuh, ops/scalar_math.h) at hand under their names. Needs no GPU.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tokamak::cuda {

struct Architecture {
  int major = 9, minor = 0;
  bool operator==(const Architecture&) const = default;
};

/// What the compiler is asked to make.
struct CodeForm {
  std::string architecture;  // "sm_80": machine code; "compute_90": PTX, which the driver translates
  bool machine_code = true;
};

/// For a device and the architectures that the compiler knows (80 is 8.0): machine code where it knows the device, else
/// PTX of the newest architecture that it knows and that the device, being newer, can run. Throws InternalError when
/// all are newer than the device.
CodeForm code_form(Architecture device, std::span<const int> known);

/// Machine code or PTX for the device, as code_form() has it. Throws InternalError with the compiler's log and the
/// source when the text does not compile.
std::string compile_device_code(const std::string& source, Architecture architecture);

/// A name for what compile_device_code gives: the hash of whatever decides that, which is texts, options and the build
/// of the compiler.
std::string device_code_name(const std::string& source, Architecture architecture);

/// Opens the compiler, and looks at what device_code_name needs of it, which else the first call of that does.
void open_compiler(Architecture architecture);

/// Text of a file that was embedded at build time, by its name below src/ ("backend/cuda/kernels/embedding.cu").
std::string_view embedded_source(std::string_view name);

}  // namespace tokamak::cuda
