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
#include "base/socket.h"
#include "cli/commands.h"
#include "cli/streams.h"
#include "pages/page_server.h"
#include "pages/report_page.h"

namespace tokamak {
namespace {

struct ReportArguments {
  std::vector<std::string> runs = {"run"};
  std::string out;
  std::vector<std::string> ladder;
  int64_t every = 0;
  int64_t points = 1500;
  bool serve = false;
  int64_t port = 0;
  std::string host = "127.0.0.1";
};

void visit(FieldList& v, ReportArguments& c) {
  v.positional("run", c.runs, "run folders, which are drawn over each other", false);
  v("out", c.out, "HTML file; empty: report.html in the run's folder, of several runs in this one");
  v("ladder", c.ladder, "ladder.json of `tokamak ladder --out`, to be shown, too; those in run folders always are");
  v("every", c.every, "seconds after which the page is written again while a run trains; 0: it is written once",
    at_least(0));
  v("points", c.points, "of each line at most; of longer runs a point is the mean of several steps",
    between(10, 100000));
  v("serve", c.serve, "serve the page to a browser on this machine instead of writing a file, until Ctrl-C");
  v("port", c.port, "with --serve: its port; 0: any that is free", between(0, 65535));
  v("host", c.host, "with --serve: address of an interface that others reach; they can then read the page");
}

std::vector<std::filesystem::path> ladders_of(const ReportArguments& arguments) {
  std::vector<std::filesystem::path> files(arguments.ladder.begin(), arguments.ladder.end());
  for (const std::string& run : arguments.runs)
    if (std::filesystem::path file = std::filesystem::path(run) / "ladder.json"; std::filesystem::exists(file))
      files.push_back(file);
  return files;
}

struct Report {
  std::string page;
  bool trains = false;  // a run still does
};

// A browser reads it again after so many seconds while a run trains, else after `idle`; 0: never.
Report make_report(const ReportArguments& arguments, int64_t reload, int64_t idle = 0) {
  std::vector<RunHistory> runs;
  for (const std::string& run : arguments.runs) runs.push_back(read_history(run, size_t(arguments.points)));
  bool trains = std::ranges::any_of(runs, [](const RunHistory& run) { return run.is_training; });
  ReportOptions options{.date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr))),
                        .reload = trains ? reload : idle,
                        .ladders = ladders_of(arguments)};
  return {report_page(runs, options), trains};
}

// True when a run still trains.
bool write_report(const ReportArguments& arguments, const std::string& out) {
  Report report = make_report(arguments, arguments.every);
  write_output_file(out, report.page);
  return report.trains;
}

void require_servable(const ReportArguments& arguments) {
  if (!arguments.out.empty())
    user_error("[out] expected a page to write or to serve, got --out={} and --serve; leave one out", arguments.out);
  if (arguments.host != "localhost" && !is_loopback(arguments.host))
    print_warning(fmt::format("everyone who reaches {} can read the page: there is no password", arguments.host));
}

int serve_report(const ReportArguments& arguments) {
  constexpr int64_t kUsual = 5, kIdle = 30;  // seconds
  require_servable(arguments);
  int64_t every = arguments.every > 0 ? arguments.every : kUsual;
  auto page = [&] { return make_report(arguments, every, std::max(every, kIdle)).page; };
  page();  // what is wrong with a run is told here, and not to a browser alone
  StopSignal stop("");
  PageServer server({.host = arguments.host, .port = int(arguments.port)}, page);
  fmt::print("{} (Ctrl-C ends)\n", server.url());
  std::fflush(stdout);
  while (!stop.requested()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return 0;
}

int run_report(const ReportArguments& arguments) {
  require_charts();
  if (arguments.serve) return serve_report(arguments);
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
                                       "    tokamak report run --every=10\n"
                                       "    tokamak report run --serve",
                                       run_report);
}

}  // namespace tokamak
