#include "base/error.h"
#include "config/foreign_values.h"
#include "config/model_config.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/modern.h"

#include <fmt/ranges.h>

namespace tokamak {

std::span<const ModelFamily* const> model_families() {
  static constexpr const ModelFamily* kFamilies[] = {
      &gpt2,
      &llama,
      &modern,
  };
  return kFamilies;
}

const ModelFamily& family_of(const ModelConfig& model) {
  std::vector<std::string> known;
  for (const ModelFamily* family : model_families()) {
    if (family->name == model.family) return *family;
    known.emplace_back(family->name);
  }
  user_error("[model.family] expected a known family ({}), got '{}'{}", fmt::join(known, ", "), model.family,
             value_hint("model.family", model.family, known));
}

std::vector<std::string> unread_options(const ModelConfig& model) {
  std::vector<OwnOptions> all;
  for (const ModelFamily* family : model_families()) all.push_back(family->options);
  return unread_options("model", family_of(model).options, all);
}

}  // namespace tokamak
