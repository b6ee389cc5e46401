// The charts of a profile's page, in the page's style. Tests: tests/pages/profile_page_test.cpp.
#pragma once

#include "pages/page_charts.h"
#include "profile/report.h"
#include "profile/step_picture.h"

#include <string>

namespace tokamak {

/// All of the time as one bar of parts.
std::string breakdown_bar(const TimeBreakdown& breakdown);

/// Every kernel that computes, by FLOP/byte and the FLOP/s that it reached, below the target's roofs; areas go by time.
PointChart roofline_chart(const std::vector<KernelProfile>& kernels, const Target& target);

/// The arena from below, over time, with axes. Ours: Chart.js has no chart of rectangles that lie anywhere.
std::string memory_chart(const MemoryPicture& picture);

/// Measured and predicted times of the kernels that take longest, beside each other.
BarChart prediction_chart(const std::vector<KernelProfile>& kernels, size_t most);

/// "launch-gaps" of "launch gaps": a row of a breakdown as a class in the page's style.
std::string style_class(std::string name);

}  // namespace tokamak
