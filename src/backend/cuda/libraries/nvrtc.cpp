// The functions of NVRTC that are used, under their own names.
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

}  // namespace

const char* nvrtcGetErrorString(nvrtcResult result) {
  return find<&nvrtcGetErrorString>("nvrtcGetErrorString")(result);
}
nvrtcResult nvrtcVersion(int* major, int* minor) { return find<&nvrtcVersion>("nvrtcVersion")(major, minor); }
nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  return find<&nvrtcGetNumSupportedArchs>("nvrtcGetNumSupportedArchs")(count);
}
nvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  return find<&nvrtcGetSupportedArchs>("nvrtcGetSupportedArchs")(architectures);
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name, int headers,
                               const char* const* texts, const char* const* names) {
  return find<&nvrtcCreateProgram>("nvrtcCreateProgram")(program, source, name, headers, texts, names);
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  return find<&nvrtcDestroyProgram>("nvrtcDestroyProgram")(program);
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  return find<&nvrtcCompileProgram>("nvrtcCompileProgram")(program, count, options);
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  return find<&nvrtcGetProgramLogSize>("nvrtcGetProgramLogSize")(program, bytes);
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  return find<&nvrtcGetProgramLog>("nvrtcGetProgramLog")(program, log);
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  return find<&nvrtcGetCUBINSize>("nvrtcGetCUBINSize")(program, bytes);
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) {
  return find<&nvrtcGetCUBIN>("nvrtcGetCUBIN")(program, code);
}
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* bytes) {
  return find<&nvrtcGetPTXSize>("nvrtcGetPTXSize")(program, bytes);
}
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* text) { return find<&nvrtcGetPTX>("nvrtcGetPTX")(program, text); }
