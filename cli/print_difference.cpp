#include "cli/print_difference.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/quote.h"

namespace tokamak {
namespace {

std::string count_text(const TensorDifference& tensor) {
  return fmt::format("{} of {}", tensor.differing, num_elements(tensor.a->shape));
}

std::string types_text(const TensorDifference& tensor) {
  if (tensor.a == tensor.b) return to_string(*tensor.a);
  auto shown = [](const std::optional<ValueType>& type) { return type ? to_string(*type) : std::string("-"); };
  return shown(tensor.a) + " / " + shown(tensor.b);
}

std::string words_for(const TensorDifference& tensor) {
  if (!tensor.a || !tensor.b) return tensor.a ? "only in a" : "only in b";
  return tensor.a->shape != tensor.b->shape ? "other shape" : "";
}

}  // namespace

void print_difference(const CheckpointDifference& difference, bool all) {
  size_t width = 24, different = 0;
  for (const TensorDifference& tensor : difference.tensors) {
    if (!tensor.is_equal()) ++different;
    if (all || !tensor.is_equal()) width = std::max(width, one_line(tensor.name).size());
  }
  if (all || different > 0)
    fmt::print("{:<{}}  {:<24}{:>24}{:>11}{:>11}{:>12}  {}\n", "tensor", width, "type", "differ", "|a - b|", "relative",
               "ulps", "first");
  for (const TensorDifference& tensor : difference.tensors) {
    if (!all && tensor.is_equal()) continue;
    fmt::print("{:<{}}  {:<24}", one_line(tensor.name), width, types_text(tensor));
    if (std::string words = words_for(tensor); !words.empty())
      fmt::print("{:>24}\n", words);
    else if (tensor.differing == 0)
      fmt::print("{:>24}\n", tensor.is_equal() ? "equal" : "equal values");
    else
      fmt::print("{:>24}{:>11.3g}{:>11.3g}{:>12}  {}\n", count_text(tensor), tensor.largest, tensor.relative,
                 tensor.ulps ? fmt::format("{}", *tensor.ulps) : "-", tensor.first);
  }
  size_t count = difference.tensors.size();
  fmt::print("{}{} of {} tensors are equal{}\n", all || different > 0 ? "\n" : "", count - different, count,
             difference.has_states ? "" : "; states of an optimizer were not compared, as only one has them, or none");
}

}  // namespace tokamak
