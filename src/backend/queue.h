// The type by which a backend's streams are handed to what works on them.
#pragma once

namespace tokamak {

/// The stream of a GPU (cudaStream_t) on which work is queued; null on the CPU, where work is done on return.
using Queue = void*;

}  // namespace tokamak
