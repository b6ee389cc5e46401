// Samples of a WebDataset archive: members whose names are the same up to the first dot behind the last slash.
// Tests: tests/data/sources/sample_members_test.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

namespace tokamak {

/// Finds out whether samples have several members that are documents. Those of a sample need not follow each other.
class SampleMembers {
 public:
  /// A member that is read. Gives an earlier one of the same sample; empty if there is none, if one was given before,
  /// or behind the first kMostSamples samples.
  std::string add(const std::string& member);

 private:
  static constexpr size_t kMostSamples = size_t(1) << 16;

  std::unordered_map<std::string, std::string> members_;  // by sample: the first one
  bool found_ = false;
};

}  // namespace tokamak
