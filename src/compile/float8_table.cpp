#include "compile/float8_table.h"

#include "compile/pipe_compiler.h"
#include "compile/step_compiler.h"
#include "ops/classifier.h"
#include "passes/float8_choice.h"
#include "plan/product_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace tokamak {
namespace {

constexpr std::string_view kPass = "float8_products";

std::string_view words_of(Float8Choice choice) {
  switch (choice) {
    case Float8Choice::kEightBits: return "eight bits";
    case Float8Choice::kNumbersSaid: return "as its numbers are said";
    case Float8Choice::kSizes: return "bf16: sizes are no multiples of 16";
    case Float8Choice::kCastsTakeMore: return "bf16: casts would take more than it saves";
    case Float8Choice::kSlowerHere: return "bf16: measured to be faster, with the casts that eight bits take";
    case Float8Choice::kExcepted: return "bf16: compile.fp8_except names its weight";
    case Float8Choice::kRangeUnknown: return "bf16: the range of an operand is not known";
  }
  return "";
}

std::string parameters_of(const Graph& graph) {
  std::string names;
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) names += argument.name + " ";
  return names;
}

}  // namespace

PassObserver Float8Table::observer(const PassContext& context) {
  if (context.options.precision != Precision::kFp8) return {};
  return [this, context](const Pass& pass, const Graph& after) {
    std::span<const Pass> all = pipeline();
    auto float8 = std::find_if(all.begin(), all.end(), [](const Pass& other) { return other.name == kPass; });
    if (&pass < &*float8)
      before_ = after;
    else if (seen_.insert(parameters_of(before_)).second)
      add(before_, context);  // also where it changed nothing, of which nobody hears
  };
}

void Float8Table::add(const Graph& graph, const PassContext& context) {
  std::vector<std::optional<Float8Choice>> choices = float8_choices(graph, context);
  ProductFinder finder(graph);
  for (size_t n = 0; n < choices.size(); ++n) {
    if (!choices[n]) continue;
    std::optional<NamedProduct> product = finder.find(graph.nodes()[n]);
    bool is_classifier = graph.nodes()[n].op == &op::classifier;
    if (!product && !is_classifier) continue;
    std::string label = is_classifier ? "classifier's three" : product_label(*product);
    ++counts_[fmt::format("{:<28}{}", label, words_of(*choices[n]))];
  }
}

std::string Float8Table::text() const {
  if (counts_.empty()) return {};
  std::string text = "products, their number, and the operands that fp8 gives them\n";
  for (const auto& [line, count] : counts_) text += fmt::format("  {:>4} x {}\n", count, line);
  return text;
}

std::string float8_table(const ResolvedRun& run, const Platform& platform) {
  Float8Table table;
  PassObserver observer = table.observer(context_of(run, platform));
  if (!observer) return {};
  if (run.stages() > 1)
    compile_pipeline(run, platform, observer);
  else
    compile_step(run, platform, observer);
  return table.text();
}

}  // namespace tokamak
