// The fields of a JSON object that the program itself wrote, each of them checked. Errors name the file, the field,
// what was expected and what came. Tests: tests/data/json_fields_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// The field with the checksum of all others.
inline constexpr const char* kSeal = "checksum";

/// The text of a JSON object with its seal. Strings may hold any bytes.
std::string seal_json(nlohmann::json object);

/// More than any file of ours counts, and few enough that a sum of some, or eight bytes for each, overflows nothing.
inline constexpr int64_t kMostCounted = int64_t(1) << 59;

class JsonFields {
 public:
  /// The object in `text`; a UserError if it is none. For messages: `place`, the file, and `remedy`, what to do when it
  /// is damaged.
  JsonFields(std::string_view text, std::string_view place, std::string_view remedy);

  /// A UserError for another `format` or `version`.
  void require_format(std::string_view format, int64_t version) const;

  bool has(const char* key) const;

  /// A UserError if the object is not as seal_json() made it. Spaces between its parts do not count.
  void require_seal() const;

  /// UserErrors for a field that is missing or of another type.
  /// Whole, from 0 to `most`.
  int64_t number(const char* key, int64_t most = kMostCounted) const;
  double real(const char* key) const;
  std::string text(const char* key) const;
  JsonFields object(const char* key) const;
  std::vector<JsonFields> objects(const char* key) const;  // a list of them

  /// Throws the UserError for a field whose value makes no sense.
  [[noreturn]] void refuse(const char* key, std::string_view expected) const;

 private:
  using Object = std::shared_ptr<const nlohmann::ordered_json>;
  JsonFields(const JsonFields& parent, const nlohmann::ordered_json& object);

  const nlohmann::ordered_json& at(const char* key) const;

  Object object_;
  std::string place_, remedy_;
};

}  // namespace tokamak
