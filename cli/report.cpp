// `tokamak report`: runs as one page with charts.
#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "pages/report_page.h"

namespace tokamak {
namespace {

struct ReportArguments {
  std::vector<std::string> runs = {"run"};
  std::string out;
  int64_t every = 0;
  int64_t points = 1500;
};

void visit(FieldList& v, ReportArguments& c) {
  v.positional("run", c.runs, "run folders, which are drawn over each other", false);
  v("out", c.out, "HTML file; empty: report.html in the run's folder, of several runs in this one");
  v("every", c.every, "seconds after which the page is written again while a run trains; 0: it is written once",
    at_least(0));
  v("points", c.points, "of each line at most; of longer runs a point is the mean of several steps",
    between(10, 100000));
}

// True when a run still trains.
bool write_report(const ReportArguments& arguments, const std::string& out) {
  std::vector<RunHistory> runs;
  for (const std::string& run : arguments.runs) runs.push_back(read_history(run, size_t(arguments.points)));
  bool trains = std::ranges::any_of(runs, [](const RunHistory& run) { return run.is_training; });
  ReportOptions options{.date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))};
  if (trains) options.reload = arguments.every;
  write_output_file(out, report_page(runs, options));
  return trains;
}

int run_report(const ReportArguments& arguments) {
  require_charts();
  std::string out = arguments.out;
  if (out.empty())
    out = arguments.runs.size() == 1 ? (std::filesystem::path(arguments.runs[0]) / "report.html").string()
                                     : "report.html";
  StopSignal stop("");
  bool trains = write_report(arguments, out);
  if (arguments.every > 0 && trains)
    fmt::print("{}: written every {} s; Ctrl-C ends\n", printable(out), arguments.every);
  std::fflush(stdout);
  while (arguments.every > 0 && trains && !stop.requested()) {
    auto due = std::chrono::steady_clock::now() + std::chrono::seconds(arguments.every);
    while (std::chrono::steady_clock::now() < due && !stop.requested())
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    trains = write_report(arguments, out);
  }
  fmt::print("{}: {} run{}\n", printable(out), arguments.runs.size(), arguments.runs.size() == 1 ? "" : "s");
  return 0;
}

}  // namespace

Command report_command() {
  return make_command<ReportArguments>("report", "a page with charts of runs: losses, speed, evaluations, what differs",
                                       "    tokamak report run\n"
                                       "    tokamak report run1 run2 --out=both.html\n"
                                       "    tokamak report run --every=10",
                                       run_report);
}

}  // namespace tokamak
