#include "data/hugging_face_fields.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace tokamak {

using nlohmann::json;

const json& field(const json& object, const char* key) {
  static const json kNone;
  if (!object.is_object()) return kNone;
  auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

bool is_off(const json& value) {
  return value.is_null() || value == false || (value.is_number() && value == 0) || value == "";
}

AddedToken read_added_token(const json& object, std::string_view where) {
  auto read = [&](const char* key) {
    const json& value = field(object, key);
    if (!value.is_null() && !value.is_boolean())
      user_error("[tokenizer] {}.{}: expected true or false, got {}; repair the file", where, key,
                 format_json(value).substr(0, 80));
    return value == true;
  };
  return {.special = read("special"),
          .normalized = read("normalized"),
          .lstrip = read("lstrip"),
          .rstrip = read("rstrip"),
          .single_word = read("single_word")};
}

}  // namespace tokamak
