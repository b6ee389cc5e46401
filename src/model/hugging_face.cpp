#include "model/hugging_face.h"

#include "base/error.h"
#include "base/json.h"
#include "model/model.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace tokamak {

const ModelFamily& family_of_config(const nlohmann::json& config, const std::string& where) {
  std::string type = HuggingFaceConfig(config, where).text("model_type", "");
  std::vector<std::string_view> known;
  for (const ModelFamily* family : model_families()) {
    if (!family->hugging_face) continue;
    for (std::string_view of_family : family->hugging_face->model_types) {
      if (of_family == type) return *family;
      known.push_back(of_family);
    }
  }
  user_error("{}: expected model_type to be one of {}, got '{}'; models of other types cannot be used here", where,
             fmt::join(known, ", "), type);
}

const nlohmann::json& HuggingFaceConfig::field(const char* key) const {
  static const nlohmann::json kNothing;
  return config_.is_object() && config_.contains(key) ? config_[key] : kNothing;
}

int64_t HuggingFaceConfig::size(const char* key, int64_t otherwise) const {
  const nlohmann::json& value = field(key);
  if (value.is_null() && otherwise > 0) return otherwise;
  bool fits = value.is_number_unsigned() && value.get<uint64_t>() >= 1 && value.get<uint64_t>() <= uint64_t(1) << 31;
  if (!fits) refuse(key, "a size of at least 1", "the file is damaged or of another kind of model");
  return value.get<int64_t>();
}

double HuggingFaceConfig::number(const char* key, double otherwise) const {
  const nlohmann::json& value = field(key);
  if (value.is_null()) return otherwise;
  if (!value.is_number()) refuse(key, "a number", "the file is damaged");
  return value.get<double>();
}

bool HuggingFaceConfig::flag(const char* key, bool otherwise) const {
  const nlohmann::json& value = field(key);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) refuse(key, "true or false", "the file is damaged");
  return value.get<bool>();
}

std::string HuggingFaceConfig::text(const char* key, const std::string& otherwise) const {
  const nlohmann::json& value = field(key);
  if (value.is_null()) return otherwise;
  if (!value.is_string()) refuse(key, "a text", "the file is damaged");
  return value.get<std::string>();
}

void HuggingFaceConfig::refuse(const char* key, const std::string& expected, const std::string& why) const {
  const nlohmann::json& got = field(key);
  user_error("{}: expected {} to be {}, got {}; {}", where_, key, expected,
             got.is_null() ? "nothing" : format_json(got).substr(0, 80), why);
}

}  // namespace tokamak
