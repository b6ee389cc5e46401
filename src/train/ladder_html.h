// The ladder as one self-contained HTML page: no script, nothing from the network. Tests:
// tests/train/ladder_report_test.cpp.
#pragma once

#include "train/ladder_report.h"

#include <string>
#include <string_view>

namespace tokamak {

/// A chart of measured and predicted tokens/s, the table, and what it was measured with.
std::string ladder_html(const LadderReport& report);

/// The chart alone, for the page's style.
std::string ladder_chart(const std::vector<RungResult>& rungs);

/// With the characters that mean something in HTML replaced, and those that no page may have (base/printable.h).
std::string escape_html(std::string_view text);

}  // namespace tokamak
