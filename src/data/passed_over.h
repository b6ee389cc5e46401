// What a search through folders finds and does not take, counted so that a note can say it.
// Tests: tests/data/find_files_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tokamak {

/// The ending of a file's or member's name, as a word of a list: ".py", "without an ending".
std::string ending_of(const std::filesystem::path& path);

/// "7 .py, 1 without an ending"; of many kinds the first ones.
std::string format_counts(const std::map<std::string, int64_t>& counts);

class PassedOver {
 public:
  /// A file whose name has no format.
  void add_file(const std::filesystem::path& path);

  /// Something else, in words: "a link to a folder".
  void add(const std::string& kind) { ++counts_[kind]; }

  int64_t total() const;
  const std::map<std::string, int64_t>& counts() const { return counts_; }

  /// "passed over 3 files...", with what to do about each kind of file; empty if there is none.
  std::string describe(const std::string& folder) const;

 private:
  std::map<std::string, int64_t> counts_;
  std::map<std::string, std::filesystem::path> examples_;  // one file of each ending
};

}  // namespace tokamak
