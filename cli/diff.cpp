// `tokamak diff`: at which step two runs part, and in which tensors.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "checkpoint/compare_checkpoints.h"
#include "checkpoint/compare_runs.h"
#include "cli/commands.h"
#include "cli/print_difference.h"
#include "cli/quote.h"

namespace tokamak {
namespace {

using nlohmann::ordered_json;

struct RunDiffArguments {
  std::string a, b;
  bool json = false;
};

void visit(FieldList& v, RunDiffArguments& c) {
  v.positional("a", c.a, "run folder");
  v.positional("b", c.b, "another");
  v("json", c.json, "print one JSON object, for programs");
}

void print_steps(const RunDifference& d) {
  if (!d.first) {
    fmt::print("equal in all {} steps that both have (a has {}, b {})\n", d.common, d.steps_a, d.steps_b);
  } else {
    fmt::print("part at step {}, by {}\n", *d.first, fmt::join(d.what, ", "));
    fmt::print("  a: loss {}, gradient norm {}\n  b: loss {}, gradient norm {}\n", d.a.loss, d.a.grad_norm, d.b.loss,
               d.b.grad_norm);
  }
  if (d.digests == 0)
    fmt::print(
        "no step has digests of parameters in both (train.digest_every), so losses and norms alone were compared\n");
  else if (d.first)
    fmt::print("digests: of {} steps; {}\n", d.digests,
               d.same_digest > 0 ? fmt::format("parameters were equal after step {}", d.same_digest)
                                 : "none before it is equal");
  else
    fmt::print("digests: of {} steps, all equal\n", d.digests);
}

void print_tensors(const RunDifference& d, const std::optional<CheckpointDifference>& tensors) {
  if (!tensors) {
    fmt::print("\nno checkpoint of a step {}that both have: tensors were not compared\n",
               d.first ? fmt::format("from {} on ", *d.first) : "");
    return;
  }
  fmt::print("\na: {}\nb: {}\n\n", one_line(d.checkpoint_a->string()), one_line(d.checkpoint_b->string()));
  print_difference(*tensors, /*all=*/false);
}

ordered_json to_json(const RunDifference& d, const std::optional<CheckpointDifference>& tensors) {
  ordered_json json = {{"equal", !d.first && (!tensors || tensors->is_equal())},
                       {"steps_a", d.steps_a},
                       {"steps_b", d.steps_b},
                       {"common_steps", d.common},
                       {"common_digests", d.digests}};
  if (d.first) {
    json["first_step"] = *d.first;
    json["what"] = d.what;
    json["last_equal_digest"] = d.same_digest;
  }
  if (!tensors) return json;
  json["checkpoints"] = {d.checkpoint_a->string(), d.checkpoint_b->string()};
  json["tensors"] = ordered_json::array();
  for (const TensorDifference& tensor : tensors->tensors)
    if (!tensor.is_equal()) json["tensors"].push_back(tensor.name);
  return json;
}

int run_diff(const RunDiffArguments& arguments) {
  RunDifference difference = compare_runs(arguments.a, arguments.b);
  std::optional<CheckpointDifference> tensors;
  if (difference.checkpoint_a)
    tensors = compare_checkpoints(open_unverified(*difference.checkpoint_a), open_unverified(*difference.checkpoint_b));
  if (arguments.json) {
    fmt::print("{}\n", printable(format_json(to_json(difference, tensors))));
  } else {
    print_steps(difference);
    print_tensors(difference, tensors);
  }
  return difference.first || (tensors && !tensors->is_equal()) ? 1 : 0;
}

}  // namespace

Command diff_command() {
  return make_command<RunDiffArguments>("diff", "at which step two runs part, and in which tensors",
                                        "Compares losses, gradient norms and digests (train.digest_every) of the steps "
                                        "that both runs have, then the tensors\n"
                                        "of the first checkpoints from there on that are of one step. The exit status "
                                        "is 0 where nothing differs, else 1.\n\n"
                                        "  tokamak diff run other",
                                        run_diff);
}

}  // namespace tokamak
