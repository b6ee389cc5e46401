// What `tokamak ladder` has measured, as part of a page of runs. Tests: tests/pages/ladder_part_test.cpp.
#pragma once

#include "pages/page_charts.h"

#include <filesystem>

namespace tokamak {

/// A heading, a chart of measured and predicted tokens/s, and a table, of the ladder.json in `file`. UserError where it
/// is no such file.
std::string ladder_part(const std::filesystem::path& file, PageCharts& charts);

}  // namespace tokamak
