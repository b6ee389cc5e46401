// Fields that Hugging Face's files have in common.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "data/vocabulary.h"

namespace tokamak {

/// Null where there is none, or `object` is none. No copy: a vocabulary has 50,000 entries.
const nlohmann::json& field(const nlohmann::json& object, const char* key);

/// Absent, null, false, zero or an empty string.
bool is_off(const nlohmann::json& value);

/// The settings of an added token, but for its id; those that are absent are off. A UserError names `where` and the
/// field.
AddedToken read_added_token(const nlohmann::json& object, std::string_view where);

}  // namespace tokamak
