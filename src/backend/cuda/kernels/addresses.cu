// Writes up to kAddresses addresses, which come as the kernel's argument, to a table on the device: a launch like any
// other, so that it may be recorded and reads no memory of the host's.
#include "backend/cuda/kernels/std.cuh"

struct Addresses {
  uint64_t at[kAddresses];
};

extern "C" __global__ void __launch_bounds__(kAddresses)
    write_addresses(Addresses addresses, uint64_t* table, int32_t count) {
  tokamak::begin_kernel();
  if (int(threadIdx.x) < count) table[threadIdx.x] = addresses.at[threadIdx.x];
}
