// Chart.js as CMake found it (src/pages/CMakeLists.txt).
#pragma once

#include "base/embedded_file.h"

#include <span>

namespace tokamak {

/// Empty in a build without it.
std::span<const EmbeddedFile> chart_library();
/// report.css and report.js.
std::span<const EmbeddedFile> report_files();
/// scaling.js.
std::span<const EmbeddedFile> scaling_files();
/// charts.js.
std::span<const EmbeddedFile> chart_files();

}  // namespace tokamak
