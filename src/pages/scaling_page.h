// `tokamak scaling`: its laws as one self-contained page with charts. Tests: tests/pages/scaling_page_test.cpp.
#pragma once

#include "scaling/scaling_report.h"

#include <string>

namespace tokamak {

/// Charts of loss over compute, tokens and parameters and of the best size, and the report's text. UserError where this
/// build has no library of charts (pages/report_page.h: require_charts()).
std::string scaling_page(const ScalingReport& report);

}  // namespace tokamak
