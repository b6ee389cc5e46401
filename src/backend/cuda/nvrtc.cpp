#include "backend/cuda/nvrtc.h"

#include "backend/cuda/check.h"
#include "backend/cuda/embedded_sources.h"
#include "backend/cuda/libraries/late_library.h"
#include "base/error.h"
#include "base/sha256.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tokamak::cuda {
namespace {

struct ProgramHolder {
  nvrtcProgram program = nullptr;
  ~ProgramHolder() {
    if (program) nvrtcDestroyProgram(&program);
  }
};

// Headers of which device code gets another version.
constexpr std::pair<const char*, const char*> kReplacedHeaders[] = {
    {"ops/scalar_float.h", "backend/cuda/kernels/scalar_float.cuh"}};

// C++'s own headers, which scalar_math.h includes; what it needs of them is in kernels/std.cuh.
constexpr const char* kEmptyHeaders[] = {"bit", "cmath", "cstdint", "cstddef", "array"};

std::vector<int> supported_architectures() {
  int count = 0;
  TOKAMAK_CUDA(nvrtcGetNumSupportedArchs(&count));
  std::vector<int> archs(static_cast<size_t>(count));
  TOKAMAK_CUDA(nvrtcGetSupportedArchs(archs.data()));
  return archs;
}

CodeForm code_form_here(Architecture device) {
  static const std::vector<int> known = supported_architectures();
  return code_form(device, known);
}

std::vector<std::string> options(const CodeForm& form) {
  // No contraction of a * b + c: a value must not depend on what it is fused with. Kernels that want it say fmaf.
  return {"--gpu-architecture=" + form.architecture,
          "--std=c++20",
          "--device-as-default-execution-space",
          "--minimal",  // no declarations of textures and of the runtime: a quarter of a small kernel's time
          "--fmad=false",
          "--prec-div=false",
          "--prec-sqrt=false",
          "--ftz=true"};
}

// NVRTC's version, and what its file is: patches of one version are other compilers.
std::string compiler_build() {
  int major = 0, minor = 0;
  TOKAMAK_CUDA(nvrtcVersion(&major, &minor));
  std::string build = fmt::format("nvrtc {}.{}", major, minor);
  struct stat file {};
  if (::stat(nvrtc_library().path().c_str(), &file) == 0)
    build += fmt::format(", {} bytes of {}", file.st_size, file.st_mtime);
  return build + "\n";
}

std::string header_texts() {
  std::string texts;
  for (const EmbeddedFile& header : embedded_sources()) texts += header.text;
  return texts;
}

std::string log_of(nvrtcProgram program) {
  size_t size = 0;
  TOKAMAK_CUDA(nvrtcGetProgramLogSize(program, &size));
  std::string log(size, '\0');
  TOKAMAK_CUDA(nvrtcGetProgramLog(program, log.data()));
  return log;
}

std::string code_of(nvrtcProgram program, bool machine_code) {
  size_t size = 0;
  TOKAMAK_CUDA(machine_code ? nvrtcGetCUBINSize(program, &size) : nvrtcGetPTXSize(program, &size));
  std::string code(size, '\0');
  TOKAMAK_CUDA(machine_code ? nvrtcGetCUBIN(program, code.data()) : nvrtcGetPTX(program, code.data()));
  return code;
}

}  // namespace

CodeForm code_form(Architecture device, std::span<const int> known) {
  int number = device.major * 10 + device.minor, newest = 0;
  for (int architecture : known)
    if (architecture <= number) newest = std::max(newest, architecture);
  TOKAMAK_CHECK(newest > 0, "NVRTC knows no architecture as old as {}.{}", device.major, device.minor);
  if (newest != number) return {fmt::format("compute_{}", newest), false};
  // Hopper's tensor cores are only in the instruction set of exactly that chip, which is the one at hand.
  return {fmt::format("sm_{}{}", number, number == 90 ? "a" : ""), true};
}

std::string_view embedded_source(std::string_view name) {
  for (const EmbeddedFile& source : embedded_sources())
    if (source.name == name) return source.text;
  internal_error(__FILE__, __LINE__, "an embedded source", std::string(name));
}

std::string compile_device_code(const std::string& source, Architecture architecture) {
  std::vector<const char*> names(std::begin(kEmptyHeaders), std::end(kEmptyHeaders)), texts(names.size(), "");
  for (const EmbeddedFile& header : embedded_sources()) {
    names.push_back(header.name);
    texts.push_back(header.text);
  }
  for (auto [name, by] : kReplacedHeaders) {
    names.push_back(name);
    texts.push_back(embedded_source(by).data());
  }
  ProgramHolder holder;
  TOKAMAK_CUDA(
      nvrtcCreateProgram(&holder.program, source.c_str(), "kernel.cu", int(names.size()), texts.data(), names.data()));
  CodeForm form = code_form_here(architecture);
  std::vector<std::string> flags = options(form);
  std::vector<const char*> pointers;
  for (const std::string& flag : flags) pointers.push_back(flag.c_str());
  nvrtcResult status = nvrtcCompileProgram(holder.program, int(pointers.size()), pointers.data());
  TOKAMAK_CHECK(status == NVRTC_SUCCESS, "device code does not compile: {}\n{}\n{}", describe(status),
                log_of(holder.program), source);
  return code_of(holder.program, form.machine_code);
}

void open_compiler(Architecture architecture) { device_code_name("", architecture); }

std::string device_code_name(const std::string& source, Architecture architecture) {
  static const std::string same_for_all = sha256(compiler_build() + header_texts());
  std::string decisive = same_for_all;
  for (const std::string& option : options(code_form_here(architecture))) decisive += option + "\n";
  return sha256(decisive + source);
}

}  // namespace tokamak::cuda
