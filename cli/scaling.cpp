// `tokamak scaling`: the scaling law of a user's own runs, and the next size by it.
#include <fmt/core.h>

#include "base/error.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "pages/report_page.h"
#include "pages/run_point.h"
#include "pages/scaling_page.h"

namespace tokamak {
namespace {

struct ScalingArguments {
  std::vector<std::string> runs;
  std::string points;
  double next = 10;
  int64_t draws = 1000;
  int64_t seed = 1;
  double huber = 0.01;
  std::string html;
  bool json = false;
};

void visit(FieldList& v, ScalingArguments& c) {
  v.positional("run", c.runs, "run folders, each of a training that has ended", false);
  v("points", c.points, "file of JSON lines with parameters, tokens and loss, for runs of other programs; empty: none");
  v("next", c.next, "what is said of the next size is for so many times the compute of the largest run",
    from_up_to(1, 1e9));
  v("draws", c.draws, "times that the law is fitted again to points drawn anew, to tell how sure it is",
    between(100, 100000));
  v("seed", c.seed, "of these draws");
  v("huber", c.huber, "share of the loss beyond which a run counts by its distance, not its square; 0: never",
    at_least(0));
  v("html", c.html, "HTML file for charts; empty: none");
  v("json", c.json, "print one JSON object, for programs");
}

int run_scaling(const ScalingArguments& arguments) {
  if (!arguments.html.empty()) require_charts();
  if (arguments.runs.empty() && arguments.points.empty())
    user_error("[scaling] expected run folders or --points, got none; name runs that differ in size and length");
  std::vector<std::string> notes;
  ScalingRequest request{.points = {},
                         .fit = {.huber = arguments.huber, .draws = arguments.draws, .seed = arguments.seed},
                         .next = arguments.next};
  request.model.vocab = 0;
  double most = 0;
  for (RunPoint& run : read_run_points(arguments.runs, notes)) {
    if (run.point.at.flops() > most) most = run.point.at.flops(), request.model = run.config.model;
    request.points.push_back(std::move(run.point));
  }
  if (!arguments.points.empty())
    for (ScalingPoint& point : read_point_file(arguments.points)) request.points.push_back(std::move(point));
  ScalingReport report = make_scaling_report(std::move(request), std::move(notes));
  if (!arguments.html.empty()) write_output_file(arguments.html, scaling_page(report));
  fmt::print("{}", printable(arguments.json ? scaling_json(report) + "\n" : format_scaling(report)));
  return 0;
}

}  // namespace

Command scaling_command() {
  return make_command<ScalingArguments>("scaling",
                                        "the scaling law of your own runs: loss by compute, parameters and tokens",
                                        "Eight runs of three sizes and three lengths are enough for a law of both, "
                                        "five for a curve of compute alone. Each "
                                        "counts once, with its last validation loss.\n\n"
                                        "  tokamak scaling runs/*\n"
                                        "  tokamak scaling runs/* --next=30 --html=scaling.html\n"
                                        "  tokamak scaling --points=points.jsonl",
                                        run_scaling);
}

}  // namespace tokamak
