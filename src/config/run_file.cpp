#include "config/run_file.h"

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "config/json.h"
#include "config/toml.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr const char* kConfigFile = "config.json";

bool is_json(const std::string& text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{';
}

}  // namespace

RunFileContent read_run_file(const std::vector<Field>& fields, const std::string& path) {
  bool is_run = fs::is_directory(path);
  if (is_run && !fs::exists(fs::path(path) / kConfigFile))
    user_error(
        "[{}] expected a run file or the folder of a run, got a folder without {}; check the path, or name data with "
        "--data.path={}",
        path, kConfigFile, path);
  if (path.find('=') != path.npos && !fs::exists(path))
    user_error("[{}] expected a run file or the folder of a run, got nothing of that name; options are written --{}",
               path, path);
  std::string file = is_run ? (fs::path(path) / kConfigFile).string() : path;
  std::string text = read_file(file);
  if (!is_json(text)) return {parse_toml(fields, text, file)};
  std::vector<Assignment> assignments = parse_json(text, file);
  std::vector<Field> known = config_fields(fields);
  for (const Assignment& assignment : assignments) require_field(known, assignment.key, assignment.where);
  if (is_run) assignments.push_back({"train.out", path, path});
  return {std::move(assignments), true};
}

}  // namespace tokamak
