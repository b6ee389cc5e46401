// The one thing that training wants of a JSON object: the text in one of its fields.
// For examples see tests/data/sources/jsonl_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

/// The string under `field` in the JSON object that `object` is; other fields may hold NaN, Infinity and numbers beyond
/// a double. UserErrors begin with `place` ("a.jsonl line 3"), say what is wrong at which column, and end with
/// `else_do`, what can be done beside mending the object.
std::string json_text_field(std::string_view object, const std::string& field, const std::string& place,
                            std::string_view else_do);

}  // namespace tokamak
