// What other programs call the values of an option ("gpt2-medium", "bfloat16"), for hints where such a value is typed.
// Tests: tests/config/foreign_values_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// "; that is 'gpt2-355m' here" for a value of `key` that other programs have, else "; did you mean 'llama3-8b'?" for
/// the nearest of `choices`, or those that contain it, else "". Case, dashes, dots and an owner ("openai/gpt2") do
/// not count.
std::string value_hint(std::string_view key, std::string_view typed, const std::vector<std::string>& choices);

}  // namespace tokamak
