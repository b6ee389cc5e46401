// JSON as every file of it is read and written. Tests: tests/base/json_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace tokamak {

/// Lists and objects inside each other. What is nested deeper would overflow the stack of whoever walks through it, and
/// fill the memory of whoever prints it with indentation.
inline constexpr int kMaxJsonDepth = 100;

/// What json_error() says of a byte of zero, at which nlohmann's parser would take the text to end.
inline constexpr std::string_view kZeroByteError = "a byte of zero";

/// The value in `text`; `discarded` if it is no JSON, or nested deeper than kMaxJsonDepth (no tree is built then).
nlohmann::json parse_json(std::string_view text);

/// The same, with members in the order of the text. Takes time in the square of an object's members.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// Why parse_json() finds no value in `text`, to stand behind a message: " (line 2, column 7: invalid literal)", the
/// line only of a text that has several; columns are bytes, from 1. Empty if it does find one.
std::string json_error(std::string_view text);

/// The same for what nlohmann's parser says of a text: `place`, how many bytes it had read, and `reason`, its what().
std::string json_error(std::string_view text, size_t place, std::string_view reason);

/// U+FFFD, which stands in files of JSON for bytes that are no UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

/// Text of a value, on one line or with so many spaces a level; bytes that are no UTF-8 (paths may have them) become
/// kReplacementCharacter.
std::string format_json(const nlohmann::json& value, int indent = -1);
std::string format_json(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace tokamak
