// `tokamak checkpoint diff`: what differs between two checkpoints or models, tensor by tensor.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "checkpoint/compare_checkpoints.h"
#include "cli/commands.h"
#include "cli/print_difference.h"
#include "cli/quote.h"

namespace tokamak {
namespace {

using nlohmann::ordered_json;

struct DiffArguments {
  std::string a, b;
  bool all = false;
  bool json = false;
};

void visit(FieldList& v, DiffArguments& c) {
  v.positional("a", c.a, "run folder, checkpoint or model in Hugging Face's form");
  v.positional("b", c.b, "another");
  v("all", c.all, "list equal tensors, too");
  v("json", c.json, "print one JSON object, for programs; it has all tensors");
}

ordered_json to_json(const TensorDifference& tensor) {
  ordered_json json = {{"name", tensor.name}, {"equal", tensor.is_equal()}};
  if (tensor.a) json["a"] = to_string(*tensor.a);
  if (tensor.b) json["b"] = to_string(*tensor.b);
  if (!tensor.is_compared()) return json;
  json["elements"] = num_elements(tensor.a->shape);
  json["differing"] = tensor.differing;
  if (tensor.differing > 0) json["first"] = tensor.first;
  json["largest"] = tensor.largest;  // null where it is infinite
  json["relative"] = tensor.relative;
  if (tensor.ulps) json["ulps"] = *tensor.ulps;
  return json;
}

int run_diff(const DiffArguments& arguments) {
  FoundCheckpoint a = open_unverified(arguments.a), b = open_unverified(arguments.b);
  CheckpointDifference difference = compare_checkpoints(a, b);
  if (arguments.json) {
    ordered_json json = {{"a", a.path.string()},
                         {"b", b.path.string()},
                         {"equal", difference.is_equal()},
                         {"compares_states", difference.has_states}};
    for (const TensorDifference& tensor : difference.tensors) json["tensors"].push_back(to_json(tensor));
    fmt::print("{}\n", printable(format_json(json)));
  } else {
    fmt::print("a: {}\nb: {}\n\n", one_line(a.path.string()), one_line(b.path.string()));
    print_difference(difference, arguments.all);
  }
  return difference.is_equal() ? 0 : 1;
}

}  // namespace

Command checkpoint_diff_command() {
  return make_command<DiffArguments>(
      "checkpoint diff", "what differs between two checkpoints or models, tensor by tensor",
      "The exit status is 0 where all tensors have the same names, types, shapes and bits, else 1. `ulps`: how many "
      "floats\n"
      "lie between two elements at most. Checksums are not compared: `tokamak checkpoint verify` does that.\n\n"
      "  tokamak checkpoint diff run other\n"
      "  tokamak checkpoint diff run/checkpoints/step_00000100 model",
      run_diff);
}

}  // namespace tokamak
