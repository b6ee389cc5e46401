// Between a host tensor's doubles and the bytes in which a tensor of its type is stored.
#pragma once

#include "graph/host_tensor.h"

#include <cstddef>

namespace tokamak {

/// num_bytes(type) bytes as a tensor.
HostTensor from_storage(const ValueType& type, const std::byte* raw);

/// The inverse; floats round to nearest, ties to even; i32 truncates.
std::vector<std::byte> to_storage(const HostTensor& tensor);

}  // namespace tokamak
