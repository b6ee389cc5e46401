#include "tune/tuning_record.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

using nlohmann::json;

constexpr const char* kSlowForms = "plain_matmuls";  // so called since all of them were groups of matmuls

}  // namespace

void TuningRecord::merge(const TuningRecord& other) {
  seconds.insert(other.seconds.begin(), other.seconds.end());
  slow_forms.insert(other.slow_forms.begin(), other.slow_forms.end());
}

std::string print_tuning(const TuningRecord& record) {
  return json{{"seconds", record.seconds}, {kSlowForms, record.slow_forms}}.dump(1) + "\n";
}

TuningRecord parse_tuning(std::string_view text) {
  try {
    json file = parse_json(text);
    TuningRecord record;
    file.at("seconds").get_to(record.seconds);
    file.at(kSlowForms).get_to(record.slow_forms);
    return record;
  } catch (const json::exception&) {
    return {};
  }
}

TuningRecord load_tuning(const std::filesystem::path& path) {
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return {};
  try {
    return parse_tuning(read_file(path));
  } catch (const UserError&) {
    return {};
  }
}

void save_tuning(const std::filesystem::path& path, const TuningRecord& record) {
  if (path.empty()) return;
  TuningRecord all = load_tuning(path);
  all.merge(record);
  try {
    make_folder(path.parent_path());
    write_shared_file(path, print_tuning(all));
  } catch (const UserError&) {
  }
}

}  // namespace tokamak
