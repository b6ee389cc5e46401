// `tokamak report`: one page that shows runs beside each other, with Chart.js inside, so that it needs no network.
// Tests: tests/pages/report_page_test.cpp.
#pragma once

#include "pages/run_history.h"

#include <span>
#include <string>

namespace tokamak {

struct ReportOptions {
  std::string date;                            // when it was made
  int64_t reload = 0;                          // seconds after which a browser reads it again; 0: never
  std::vector<std::filesystem::path> ladders;  // ladder.json of `tokamak ladder`
};

/// UserError where this build has no library of charts.
std::string report_page(std::span<const RunHistory> runs, const ReportOptions& options);

/// The same without making a page: before a user waits for one.
void require_charts();

}  // namespace tokamak
