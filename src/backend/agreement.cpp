#include "backend/agreement.h"

#include "base/error.h"
#include "base/frames.h"
#include "base/system.h"

#include <algorithm>
#include <map>

namespace tokamak {
namespace {

constexpr size_t kMaxFacts = 256 << 20;  // bytes
constexpr size_t kShown = 80;            // characters of a value

// One rank's facts, by name.
struct Said {
  std::string host;
  std::map<std::string, std::string> facts;

  std::string value(const std::string& name) const {
    auto found = facts.find(name);
    return found == facts.end() ? "nothing" : found->second;
  }
};

Said decode(const std::string& text) {
  FrameReader reader(kMaxFacts);
  reader.append(text);
  Frame frame = reader.next().value();
  Said said{frame[0], {}};
  for (size_t i = 1; i + 1 < frame.size(); i += 2) said.facts[frame[i]] = frame[i + 1];
  return said;
}

// The value that most ranks have; among equals, that of the lowest rank.
std::string usual_value(const std::vector<Said>& all, const std::string& name) {
  std::map<std::string, int> counts;
  for (const Said& said : all) ++counts[said.value(name)];
  std::string usual = all[0].value(name);
  for (const auto& [value, count] : counts)
    if (count > counts[usual]) usual = value;
  return usual;
}

// A part of the line in which two values begin to differ.
std::string excerpt(const std::string& value, const std::string& other) {
  size_t at = size_t(std::mismatch(value.begin(), value.end(), other.begin(), other.end()).first - value.begin());
  size_t begin = at == 0 ? 0 : value.rfind('\n', at - 1) + 1;  // npos + 1 is 0
  begin = std::max(begin, at > kShown / 2 ? at - kShown / 2 : 0);
  return value.substr(begin, std::min(value.find('\n', at), begin + kShown) - begin);
}

void require_same(const Communicator& ranks, const std::vector<Said>& all, const std::string& name) {
  std::string usual = usual_value(all, name), who;
  const Said* odd = nullptr;
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].value(name) == usual) continue;
    if (!odd) odd = &all[r];
    who += fmt::format("{}{} on {}", who.empty() ? "" : ", ", ranks.name_of(int(r)), all[r].host);
  }
  if (!odd) return;
  std::string value = odd->value(name);
  user_error(
      "[ranks] expected the same {} on all ranks, got '{}' on {}, and '{}' on the others; start all ranks with the "
      "same "
      "program, options and files",
      name, excerpt(value, usual), who, excerpt(usual, value));
}

}  // namespace

void require_agreement(Communicator& ranks, std::span<const Fact> facts) {
  Frame mine = {host_name()};
  for (const Fact& fact : facts) mine.insert(mine.end(), {fact.name, fact.value});
  std::vector<Said> all;
  std::map<std::string, bool> names;
  for (const std::string& text : ranks.exchange(encode_frame(mine))) {
    all.push_back(decode(text));
    for (const auto& [name, value] : all.back().facts) names[name] = true;
  }
  // In this rank's order, which is that of all who agree; then what only others know of.
  for (const Fact& fact : facts) require_same(ranks, all, fact.name);
  for (const auto& [name, known] : names) require_same(ranks, all, name);
}

std::string adopt(Communicator& ranks, std::string_view mine, int root) {
  return ranks.exchange(ranks.rank() == root ? mine : "")[size_t(root)];
}

}  // namespace tokamak
