// In place of the library where CMake has not found it.
#include "pages/chart_library.h"

namespace tokamak {

std::span<const EmbeddedFile> chart_library() { return {}; }

}  // namespace tokamak
