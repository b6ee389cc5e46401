// The functions of NVRTC that are used, under their own names. All are found when the first is called, as to find one
// waits for whoever opens another library: compilers would stop where a start opens cuBLASLt.
#include "backend/cuda/libraries/late_library.h"

#include <nvrtc.h>

namespace tokamak::cuda {

const LateLibrary& nvrtc_library() {
  static const LateLibrary library = open_toolkit_library("nvrtc");
  return library;
}

}  // namespace tokamak::cuda

namespace {

template <auto* function>
auto* find(const char* name) {
  return tokamak::cuda::nvrtc_library().find<function>(name);
}

struct Functions {
  decltype(nvrtcGetErrorString)* error_string = find<&nvrtcGetErrorString>("nvrtcGetErrorString");
  decltype(nvrtcVersion)* version = find<&nvrtcVersion>("nvrtcVersion");
  decltype(nvrtcGetNumSupportedArchs)* count_archs = find<&nvrtcGetNumSupportedArchs>("nvrtcGetNumSupportedArchs");
  decltype(nvrtcGetSupportedArchs)* archs = find<&nvrtcGetSupportedArchs>("nvrtcGetSupportedArchs");
  decltype(nvrtcCreateProgram)* create = find<&nvrtcCreateProgram>("nvrtcCreateProgram");
  decltype(nvrtcDestroyProgram)* destroy = find<&nvrtcDestroyProgram>("nvrtcDestroyProgram");
  decltype(nvrtcCompileProgram)* compile = find<&nvrtcCompileProgram>("nvrtcCompileProgram");
  decltype(nvrtcGetProgramLogSize)* log_size = find<&nvrtcGetProgramLogSize>("nvrtcGetProgramLogSize");
  decltype(nvrtcGetProgramLog)* log = find<&nvrtcGetProgramLog>("nvrtcGetProgramLog");
  decltype(nvrtcGetCUBINSize)* cubin_size = find<&nvrtcGetCUBINSize>("nvrtcGetCUBINSize");
  decltype(nvrtcGetCUBIN)* cubin = find<&nvrtcGetCUBIN>("nvrtcGetCUBIN");
  decltype(nvrtcGetPTXSize)* ptx_size = find<&nvrtcGetPTXSize>("nvrtcGetPTXSize");
  decltype(nvrtcGetPTX)* ptx = find<&nvrtcGetPTX>("nvrtcGetPTX");
};

const Functions& nvrtc() {
  static const Functions functions;
  return functions;
}

}  // namespace

const char* nvrtcGetErrorString(nvrtcResult result) { return nvrtc().error_string(result); }
nvrtcResult nvrtcVersion(int* major, int* minor) { return nvrtc().version(major, minor); }
nvrtcResult nvrtcGetNumSupportedArchs(int* count) { return nvrtc().count_archs(count); }
nvrtcResult nvrtcGetSupportedArchs(int* architectures) { return nvrtc().archs(architectures); }
nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name, int headers,
                               const char* const* texts, const char* const* names) {
  return nvrtc().create(program, source, name, headers, texts, names);
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) { return nvrtc().destroy(program); }
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  return nvrtc().compile(program, count, options);
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) { return nvrtc().log_size(program, bytes); }
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) { return nvrtc().log(program, log); }
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) { return nvrtc().cubin_size(program, bytes); }
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) { return nvrtc().cubin(program, code); }
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* bytes) { return nvrtc().ptx_size(program, bytes); }
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* text) { return nvrtc().ptx(program, text); }
