// What readers notice in the content of inputs and a user should know, collected while they read, by several threads.
// Tests: tests/data/source_notes_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

class SourceNotes {
 public:
  /// A sentence; the same one counts once. Of each `kind` the first few are given as they are, the others as a number.
  void add(const std::string& kind, const std::string& sentence);

  /// Counts a member of an archive that is not read, by the ending of its name.
  void pass_over(const std::string& member);

  /// Forgets the members: the input is read once more from its beginning.
  void begin_again();

  /// The sentences that were not given before.
  std::vector<std::string> take();

  /// What is to be said at the end: how many more there were of each kind, and what members were passed over.
  std::vector<std::string> totals() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> counts_;  // by kind
  std::set<std::string> known_;            // sentences; no more than kMostKnown, so that memory does not grow
  std::vector<std::string> untold_;
  std::map<std::string, int64_t> members_;  // by ending
};

struct SourceOptions;

/// Adds to the notes of the options, if there are any.
void note(const SourceOptions& options, std::string_view kind, const std::string& sentence);

/// Gives `tell` what was noticed since.
void tell_notes(const SourceOptions& options, const std::function<void(const std::string&)>& tell);

}  // namespace tokamak
