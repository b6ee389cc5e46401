// The ladder as one self-contained HTML page: nothing comes from the network. Tests:
// tests/ladder/ladder_report_test.cpp.
#pragma once

#include "ladder/ladder_report.h"

#include <string>

namespace tokamak {

/// A chart of measured and predicted tokens/s, the table, and what it was measured with.
std::string ladder_html(const LadderReport& report);

/// The chart alone, for the page's style.
std::string ladder_chart(const std::vector<RungResult>& rungs);

}  // namespace tokamak
