#include "autodiff/rate_groups.h"

#include "base/error.h"
#include "config/optimizer_config.h"
#include "config/suggest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

namespace tokamak {
namespace {

[[noreturn]] void refuse(const std::string& group, const std::string& why) {
  user_error(
      "[optimizer.groups] expected 'pattern: lr=SHARE decay=NUMBER' with one or both of them, got '{}': {}; for "
      "example "
      "'*.bias: lr=2 decay=0'",
      group, why);
}

double number_of(const std::string& group, const std::string& text) {
  constexpr double kMost = 1e30;  // as optimizer.lr
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(group, fmt::format("'{}' is no number", text));
  if (!(value >= 0 && value <= kMost)) refuse(group, fmt::format("{} is not from 0 to {}", text, kMost));
  return value;
}

RateGroup parse_group(const std::string& text) {
  size_t colon = text.find(':');
  if (colon == std::string::npos) refuse(text, "there is no colon behind a pattern");
  RateGroup group;
  std::istringstream(text.substr(0, colon)) >> group.pattern;
  if (group.pattern.empty()) refuse(text, "there is no pattern");
  std::istringstream settings(text.substr(colon + 1));
  for (std::string setting; settings >> setting;) {
    size_t sign = setting.find('=');
    std::string key = setting.substr(0, sign);
    if (sign == std::string::npos || (key != "lr" && key != "decay"))
      refuse(text, fmt::format("'{}' is neither lr= nor decay=", setting));
    (key == "lr" ? group.lr : group.weight_decay) = number_of(text, setting.substr(sign + 1));
  }
  if (!group.lr && !group.weight_decay) refuse(text, "it says nothing of what the pattern stands for");
  return group;
}

std::vector<std::string> parameters_of(const RateGroup& group, std::span<const std::string> parameters) {
  std::vector<std::string> matched;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(matched),
               [&](const std::string& name) { return matches_name(group.pattern, name); });
  return matched;
}

// The pattern's longest part without wildcards.
std::string literal_of(const std::string& pattern) {
  std::string longest, part;
  for (char c : pattern + "*") {
    if (c != '*' && c != '?') {
      part += c;
      continue;
    }
    if (part.size() > longest.size()) longest = part;
    part.clear();
  }
  while (longest.starts_with('.')) longest.erase(0, 1);
  while (longest.ends_with('.')) longest.pop_back();
  return longest;
}

// Whole names and what stands between their dots.
std::vector<std::string> words_of(std::span<const std::string> parameters) {
  std::vector<std::string> words(parameters.begin(), parameters.end());
  for (const std::string& name : parameters) {
    std::istringstream parts(name);
    for (std::string part; std::getline(parts, part, '.');)
      if (std::find(words.begin(), words.end(), part) == words.end()) words.push_back(part);
  }
  return words;
}

}  // namespace

std::vector<RateGroup> rate_groups(const OptimizerConfig& config) {
  std::vector<RateGroup> groups;
  for (const std::string& text : config.groups) groups.push_back(parse_group(text));
  return groups;
}

bool matches_name(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*')
    return matches_name(pattern.substr(1), name) || (!name.empty() && matches_name(pattern, name.substr(1)));
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
         matches_name(pattern.substr(1), name.substr(1));
}

void check_rate_groups(const OptimizerConfig& config, std::span<const std::string> parameters) {
  constexpr size_t kShown = 4;
  for (const RateGroup& group : rate_groups(config)) {
    if (!parameters_of(group, parameters).empty()) continue;
    user_error("[optimizer.groups] expected a pattern of parameters' names, got '{}', which is none of {}: {}, ...{}",
               group.pattern, parameters.size(), fmt::join(parameters.first(std::min(kShown, parameters.size())), ", "),
               did_you_mean(literal_of(group.pattern), words_of(parameters)));
  }
}

std::vector<std::string> describe_rate_groups(const OptimizerConfig& config, std::span<const std::string> parameters) {
  std::vector<std::string> lines;
  for (const RateGroup& group : rate_groups(config)) {
    std::vector<std::string> matched = parameters_of(group, parameters);
    std::string line =
        fmt::format("optimizer.groups {}: {} tensor{}", group.pattern, matched.size(), matched.size() == 1 ? "" : "s");
    if (!matched.empty()) line += fmt::format(" ({}{})", matched[0], matched.size() > 1 ? ", ..." : "");
    if (group.lr) line += fmt::format(", learning rate x {}", *group.lr);
    if (group.weight_decay) line += fmt::format(", weight decay {}", *group.weight_decay);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tokamak
