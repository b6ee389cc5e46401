// An entry of data.path: what the data is, and its weight in the mixture. Tests: tests/data/data_path_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tokamak {

struct DataConfig;

struct DataPath {
  std::string path;              // a folder, a file or a pattern
  std::optional<double> weight;  // what stands behind '@'

  bool operator==(const DataPath&) const = default;
};

/// Reads entries such as `web@0.7`. An '@' that no number follows belongs to the path, and so
/// does every '@' of an entry that exists under its whole name. UserErrors, which name `key`: no
/// entry, an empty one, a weight that is not above 0, weights for some entries but not for others.
std::vector<DataPath> parse_data_paths(const std::vector<std::string>& entries, const std::string& key);

/// The entries of data.path, then those of data.val_path.
std::vector<DataPath> all_data_paths(const DataConfig& config);

/// A UserError if a path that is no pattern names nothing, or a folder that `prepare` has not finished.
void require_exists(const std::string& path);

}  // namespace tokamak
