// The device code that is compiled at run time, as text: made from the files listed in CMakeLists.txt at build time.
#pragma once

#include <span>

namespace tokamak::cuda {

struct EmbeddedSource {
  const char* name;  // below src/
  const char* text;
};

std::span<const EmbeddedSource> embedded_sources();

}  // namespace tokamak::cuda
