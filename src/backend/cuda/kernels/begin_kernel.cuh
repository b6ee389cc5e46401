// From Hopper on a kernel is launched while the one before it still runs (DeviceFunction::launch_with), so that its
// blocks are there when that one ends. PTX ISA, "griddepcontrol".
#pragma once

namespace tokamak {

/// Before anything is read or written but what was written before the kernel before this one began: until the kernels
/// before have ended, and what they wrote can be read. Then the next one may be launched, once all blocks of this one
/// are here.
///
/// Not earlier: what is loaded as read-only (of a `const __restrict__` parameter) stays in a multiprocessor's cache
/// from the launch of a kernel on, so that a third kernel could find there what the first has read and the second has
/// changed. For the same reason no kernel loads so what it also writes.
#if __CUDA_ARCH__ >= 900
__device__ inline void begin_kernel() {
  asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory");
}
#else
__device__ inline void begin_kernel() {}
#endif

}  // namespace tokamak
