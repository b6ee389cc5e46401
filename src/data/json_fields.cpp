#include "data/json_fields.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"

namespace tokamak {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr size_t kShownBytes = 80;  // bytes of what came, in messages

/// Of an object without its seal.
template <typename Json>
std::string seal_of(const Json& object) {
  std::string text = format_json(object);
  return format_checksum(checksum(std::as_bytes(std::span(text))));
}

std::string show(const ordered_json& value) {
  if (value.is_null()) return "nothing";
  return format_json(value).substr(0, kShownBytes);
}

}  // namespace

std::string seal_json(json object) {
  object[kSeal] = seal_of(object);
  return format_json(object, 2) + "\n";
}

JsonFields::JsonFields(std::string_view text, std::string_view place, std::string_view remedy)
    : object_(std::make_shared<const ordered_json>(parse_ordered_json(text))), place_(place), remedy_(remedy) {
  if (!object_->is_object())
    user_error("[data] {}: expected a JSON object, got {}{}; {}", place, text.substr(0, kShownBytes), json_error(text),
               remedy);
}

JsonFields::JsonFields(const JsonFields& parent, const ordered_json& object)
    : object_(parent.object_, &object), place_(parent.place_), remedy_(parent.remedy_) {}

const ordered_json& JsonFields::at(const char* key) const {
  static const ordered_json nothing;
  auto found = object_->find(key);
  return found == object_->end() ? nothing : *found;
}

void JsonFields::refuse(const char* key, std::string_view expected) const {
  user_error("[data] {}: expected {} as `{}`, got {}; {}", place_, expected, key, show(at(key)), remedy_);
}

void JsonFields::require_format(std::string_view format, int64_t version) const {
  if (text("format") != format) refuse("format", format);
  if (number("version") != version) refuse("version", std::to_string(version));
}

void JsonFields::require_seal() const {
  std::string given = text(kSeal);
  ordered_json rest = *object_;
  rest.erase(kSeal);
  if (std::string seal = seal_of(rest); given != seal) refuse(kSeal, seal + ", that of all other fields,");
}

bool JsonFields::has(const char* key) const { return object_->contains(key); }

int64_t JsonFields::number(const char* key, int64_t most) const {
  const ordered_json& value = at(key);
  bool wraps = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
  if (!value.is_number_integer() || (!wraps && value.get<int64_t>() < 0)) refuse(key, "a whole number, at least 0");
  if (wraps) refuse(key, fmt::format("a whole number, at most {}", most));
  if (value.get<int64_t>() > most) refuse(key, fmt::format("a whole number, at most {}", most));
  return value.get<int64_t>();
}

double JsonFields::real(const char* key) const {
  if (!at(key).is_number()) refuse(key, "a number");
  return at(key).get<double>();
}

std::string JsonFields::text(const char* key) const {
  if (!at(key).is_string()) refuse(key, "a string");
  return at(key).get<std::string>();
}

JsonFields JsonFields::object(const char* key) const {
  if (!at(key).is_object()) refuse(key, "an object");
  return {*this, at(key)};
}

std::vector<JsonFields> JsonFields::objects(const char* key) const {
  std::vector<JsonFields> objects;
  if (!at(key).is_array()) refuse(key, "a list of objects");
  for (const ordered_json& value : at(key)) {
    if (!value.is_object()) refuse(key, "a list of objects");
    objects.push_back({*this, value});
  }
  return objects;
}

}  // namespace tokamak
