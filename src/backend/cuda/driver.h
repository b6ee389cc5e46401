// The few functions of NVIDIA's driver library that the runtime library does not offer. The library is opened when it
// is first needed, so that a program built with CUDA starts on machines without a driver.
#pragma once

#include <cuda.h>

namespace tokamak::cuda {

struct Driver {
  decltype(&::cuModuleLoadData) cuModuleLoadData;
  decltype(&::cuModuleUnload) cuModuleUnload;
  decltype(&::cuModuleGetFunction) cuModuleGetFunction;
  decltype(&::cuFuncSetAttribute) cuFuncSetAttribute;
  decltype(&::cuLaunchKernel) cuLaunchKernel;
  decltype(&::cuTensorMapEncodeTiled) cuTensorMapEncodeTiled;
  decltype(&::cuGetErrorName) cuGetErrorName;
  decltype(&::cuGetErrorString) cuGetErrorString;
};

/// Throws UserError when there is no driver.
const Driver& driver();

}  // namespace tokamak::cuda
