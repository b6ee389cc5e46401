// What tuning has measured and chosen, on disk: bits follow from the choices, so that they are made once.
// Tests: tests/tune/tuning_record_test.cpp.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace tokamak {

struct TuningRecord {
  std::map<std::string, double> seconds;                    // of single kernels, by kernel_key
  std::map<std::string, std::set<std::string>> slow_forms;  // by the step that they were chosen for
  bool operator==(const TuningRecord&) const = default;

  /// Adds what is not there yet.
  void merge(const TuningRecord& other);
};

/// JSON, and back; a text that is damaged gives an empty record.
std::string print_tuning(const TuningRecord& record);
TuningRecord parse_tuning(std::string_view text);

/// The file's record; empty when it cannot be read.
TuningRecord load_tuning(const std::filesystem::path& path);

/// Adds the record to the file's, where others may have written meanwhile: what came first stays. A file that cannot
/// be written costs time at the next start, no more.
void save_tuning(const std::filesystem::path& path, const TuningRecord& record);

}  // namespace tokamak
