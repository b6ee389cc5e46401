// Numbers as people write them: 1024, 1e4, 300k, 1.5M, 10B or 10G, 2T. Tests: tests/config/number_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

/// For help: what is accepted beside plain digits.
inline constexpr const char* kNumberNote =
    "Numbers may be typed as 300k, 2M, 10B or 10G, 1T (thousand, million, billion, trillion) or 1e4; files take 1e4.";

/// The whole number that the text is, exactly; nothing for a fraction, for one of more than 63 bits, and for text that
/// is no number.
std::optional<int64_t> parse_whole(std::string_view text);

/// The number nearest to what the text says; "inf" and "nan" are numbers here. Nothing where it says none.
std::optional<double> parse_real(std::string_view text);

/// A memory budget as it is typed, in GiB, rounded down: two decimals, of less than 1 GiB three digits. "0" where
/// nothing is left.
std::string format_budget_gib(double gib);

}  // namespace tokamak
