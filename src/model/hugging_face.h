// How Hugging Face's Transformers has a family of models: the fields of config.json, and what the tensors of
// model.safetensors are called. Source: the configuration and modeling files of Transformers 4 and 5.
// Tests: tests/model/hugging_face_test.cpp; tools/check_transformers.py compares with Transformers itself.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <string_view>

namespace tokamak {

struct ModelConfig;
struct ModelFamily;

struct HuggingFaceForm {
  std::span<const std::string_view> model_types;  // of config.json, that the family knows
  /// config.json of a model; vocab must be known.
  nlohmann::ordered_json (*write_config)(const ModelConfig&);
  /// The inverse. UserError that begins with `where` for what is missing, and for what no model of ours computes.
  ModelConfig (*read_config)(const nlohmann::json&, const std::string& where);
  /// What the parameter that a file's tensor holds is called here; empty: it holds none, but a mask or a tied head.
  std::string (*parameter_name)(std::string_view tensor, const ModelConfig&);
  /// The same function as a model that has all tensors that others' model of this type has, where those that ours lacks
  /// are zeros; null: ours lacks none.
  ModelConfig (*with_all_tensors)(const ModelConfig&) = nullptr;
};

/// The family whose form knows the model_type of this config.json. UserError, with the known ones, when there is none.
const ModelFamily& family_of_config(const nlohmann::json& config, const std::string& where);

/// Fields of a config.json, checked as they are read; each error is a UserError that begins with `where`.
class HuggingFaceConfig {
 public:
  HuggingFaceConfig(const nlohmann::json& config, std::string where) : config_(config), where_(std::move(where)) {}

  /// A size of at least 1 and at most 2^31; `otherwise` where it is absent or null, an error if that is 0.
  int64_t size(const char* key, int64_t otherwise = 0) const;
  double number(const char* key, double otherwise) const;
  bool flag(const char* key, bool otherwise) const;
  std::string text(const char* key, const std::string& otherwise) const;

  /// Error: "config.json: expected KEY = EXPECTED, got ...; WHY".
  [[noreturn]] void refuse(const char* key, const std::string& expected, const std::string& why) const;

 private:
  const nlohmann::json& field(const char* key) const;

  const nlohmann::json& config_;
  std::string where_;
};

}  // namespace tokamak
