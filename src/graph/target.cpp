#include "graph/target.h"

#include "base/error.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

using Json = nlohmann::ordered_json;

// Calls visit(name, member) for each. A member that is not listed here does not compile.
template <class AnyTarget, class Visit>
void visit_members(AnyTarget& target, const Visit& visit) {
  auto& [name, units, f32, bf16, tf32, fp8, bandwidth, pointwise, cache, launch, attention, tile, draw_rate, sustained,
         bias, function, vocab, classifier, argument, operand, operand_sums, prologue, accumulate, row_column, streams,
         link_bandwidth, gather_share, link_seconds, link_units, axis_links] = target;
  visit("name", name);
  visit("units", units);
  visit("f32_flops", f32);
  visit("bf16_flops", bf16);
  visit("tf32_flops", tf32);
  visit("fp8_flops", fp8);
  visit("memory_bandwidth", bandwidth);
  visit("pointwise_flops", pointwise);
  visit("cache_bytes", cache);
  visit("launch_seconds", launch);
  visit("attention_flops", attention);
  visit("attention_tile", tile);
  visit("draw_rate", draw_rate);
  visit("sustained_share", sustained);
  visit("matmul_bias", bias);
  visit("matmul_function", function);
  visit("vocab_multiple", vocab);
  visit("chunked_classifier", classifier);
  visit("matmul_argument", argument);
  visit("matmul_operand", operand);
  visit("matmul_operand_sums", operand_sums);
  visit("matmul_prologue", prologue);
  visit("matmul_accumulate", accumulate);
  visit("row_column_groups", row_column);
  visit("streams", streams);
  visit("link_bandwidth", link_bandwidth);
  visit("gather_share", gather_share);
  visit("link_seconds", link_seconds);
  visit("link_units", link_units);
  visit("axis_links", axis_links);
}

}  // namespace

LinkRate Target::link(const std::string& axis) const {
  auto at = axis_links.find(axis);
  return at == axis_links.end() ? LinkRate{link_bandwidth, link_seconds} : LinkRate{at->second[0], at->second[1]};
}

std::string print(const Target& target) {
  Json json = Json::object();
  visit_members(target, [&](const char* name, const auto& member) { json[name] = member; });
  return format_json(json);
}

Target parse_target(std::string_view text) {
  Target target;
  try {
    Json json = parse_ordered_json(text);
    visit_members(target, [&](const char* name, auto& member) {
      json.at(name).get_to(member);
      json.erase(name);
    });
    if (!json.empty()) user_error("[target] expected the members of a target, got '{}' too", json.begin().key());
  } catch (const Json::exception& error) {
    user_error("[target] expected a target as this program prints it, got other text: {}{}", error.what(),
               json_error(text));
  }
  return target;
}

}  // namespace tokamak
