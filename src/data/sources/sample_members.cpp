#include "data/sources/sample_members.h"

namespace tokamak {

std::string SampleMembers::add(const std::string& member) {
  if (found_ || members_.size() >= kMostSamples) return "";
  size_t slash = member.rfind('/');
  std::string sample = member.substr(0, member.find('.', slash == member.npos ? 0 : slash));
  auto [at, is_first] = members_.try_emplace(sample, member);
  if (is_first || at->second == member) return "";
  found_ = true;
  return at->second;
}

}  // namespace tokamak
