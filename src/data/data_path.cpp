#include "data/data_path.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "config/data_config.h"
#include "data/token_shard_index.h"

namespace tokamak {

namespace {

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

DataPath parse_entry(const std::string& entry, const std::string& key) {
  DataPath path{entry, std::nullopt};
  bool is_name = std::filesystem::exists(entry);
  if (size_t at = entry.rfind('@'); at != std::string::npos && !is_name) {
    path.weight = parse_number(std::string_view(entry).substr(at + 1));
    if (path.weight) path.path = entry.substr(0, at);
  }
  if (path.path.empty()) user_error("[{}] expected the path of data, got '{}'; name a folder or a file", key, entry);
  if (path.weight && !(*path.weight > 0 && std::isfinite(*path.weight)))
    user_error("[{}] expected a weight above 0 behind '@', got '{}'; leave the entry out if it is not wanted", key,
               entry);
  return path;
}

}  // namespace

std::vector<DataPath> parse_data_paths(const std::vector<std::string>& entries, const std::string& key) {
  if (entries.empty()) user_error("[{}] expected the path of data, got nothing; name a folder or a file", key);
  std::vector<DataPath> paths;
  for (const std::string& entry : entries) paths.push_back(parse_entry(entry, key));
  auto with = std::count_if(paths.begin(), paths.end(), [](const DataPath& path) { return path.weight.has_value(); });
  if (with != 0 && with != int64_t(paths.size()))
    user_error(
        "[{}] expected weights for all {} entries or for none (then each counts by its size), got them for {}; write "
        "path@weight for each",
        key, paths.size(), with);
  return paths;
}

std::vector<DataPath> all_data_paths(const DataConfig& config) {
  std::vector<DataPath> paths = parse_data_paths(config.path, "data.path");
  if (!config.val_path.empty())
    for (DataPath& path : parse_data_paths(config.val_path, "data.val_path")) paths.push_back(std::move(path));
  return paths;
}

void require_exists(const std::string& path) {
  require_finished(path);
  if (std::filesystem::exists(path) || path.find_first_of("*?[") != path.npos) return;
  if (path.find(kReplacementCharacter) != path.npos)
    user_error(
        "[data] expected the data under the name that the run has of it, got {}, which does not exist: the files of a "
        "run keep no names that are not UTF-8; name the data with --data.path (--data of `eval`), or rename it",
        path);
  user_error(
      "[data] expected a folder made by `tokamak prepare`, files of tokens or text as data, got {}, which does not "
      "exist; check the path, or make the folder with `tokamak prepare`",
      path);
}

}  // namespace tokamak
