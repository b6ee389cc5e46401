// The device code that is compiled at run time, as text: made from the files listed in CMakeLists.txt at build time.
#pragma once

#include "base/embedded_file.h"

#include <span>

namespace tokamak::cuda {

std::span<const EmbeddedFile> embedded_sources();

}  // namespace tokamak::cuda
