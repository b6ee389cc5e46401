#include "cli/profile_output.h"

#include <fmt/chrono.h>

#include "base/output_file.h"
#include "pages/profile_page.h"
#include "profile/trace.h"

namespace tokamak {

void visit(FieldList& v, ProfileOutput& c) {
  v("kernels", c.kernels, "lines of the table of kernels", at_least(1));
  v("trace", c.trace, "file for a trace that ui.perfetto.dev opens, .json.gz or .json; empty: none");
  v("page", c.page, "HTML file with charts: time, roofline, memory, timeline, predictions; empty: none");
  v("json", c.json, "file for all numbers; empty: none");
}

void check_files(const ProfileOutput& output) {
  if (!output.trace.empty()) check_trace_file(output.trace);
  for (const std::string& file : {output.json, output.page, output.trace})
    if (!file.empty()) check_output_file(file);
}

std::string write_profile(const ProfileOutput& output, const Machine& machine, const std::string& command,
                          ProfileReport& report) {
  report.versions = machine.versions;
  report.command = command;
  report.date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  if (!output.json.empty()) write_output_file(output.json, profile_json(report));
  if (!output.page.empty()) write_output_file(output.page, profile_page(report));
  if (!output.trace.empty()) write_trace(output.trace, format_trace(report.trace, report.command));
  return format_profile(report, size_t(output.kernels));
}

}  // namespace tokamak
