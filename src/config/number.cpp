#include "config/number.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tokamak {
namespace {

template <class T>
std::optional<T> read_all(std::string_view text) {
  T value;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The power of ten that a last letter stands for; 0 for none. Small letters but k mean something else elsewhere: m is
/// a thousandth, b a bit.
int power_of(char letter) {
  switch (letter) {
    case 'k':
    case 'K': return 3;
    case 'M': return 6;
    case 'B':
    case 'G': return 9;
    case 'T': return 12;
    default: return 0;
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// sign x digits x 10^exponent.
struct Decimal {
  bool negative = false;
  std::string digits;
  int exponent = 0;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal number;
  number.negative = text.starts_with('-');
  if (number.negative) text.remove_prefix(1);
  bool point = false;
  size_t at = 0;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
    } else {
      number.digits += text[at];
      number.exponent -= point ? 1 : 0;
    }
  }
  std::string_view rest = text.substr(at);
  if (number.digits.empty() || rest.empty()) return number.digits.empty() ? std::nullopt : std::optional(number);
  if (int power = power_of(rest[0])) {
    if (rest.size() > 1) return std::nullopt;
    number.exponent += power;
    return number;
  }
  if (rest[0] != 'e' && rest[0] != 'E') return std::nullopt;
  rest.remove_prefix(1);
  if (rest.starts_with('+') && rest.size() > 1 && is_digit(rest[1])) rest.remove_prefix(1);
  std::optional<int> exponent = read_all<int>(rest);
  constexpr int kMost = 10000;  // far beyond every type of number
  if (!exponent || std::abs(*exponent) > kMost) return std::nullopt;
  number.exponent += *exponent;
  return number;
}

}  // namespace

std::optional<int64_t> parse_whole(std::string_view text) {
  constexpr int kMostDigits = 19;
  std::optional<Decimal> number = parse_decimal(text);
  if (!number) return std::nullopt;
  std::string& digits = number->digits;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  for (; number->exponent < 0 && digits.ends_with('0'); ++number->exponent) digits.pop_back();
  if (digits.empty()) return 0;
  if (number->exponent < 0 || int64_t(digits.size()) + number->exponent > kMostDigits) return std::nullopt;
  return read_all<int64_t>((number->negative ? "-" : "") + digits + std::string(size_t(number->exponent), '0'));
}

std::optional<double> parse_real(std::string_view text) {
  if (std::optional<double> plain = read_all<double>(text)) return plain;
  std::optional<Decimal> number = parse_decimal(text);
  if (!number) return std::nullopt;
  return read_all<double>((number->negative ? "-" : "") + number->digits + "e" + std::to_string(number->exponent));
}

std::string format_budget_gib(double gib) {
  if (gib <= 0) return "0";
  constexpr int kDigits = 3;
  int decimals = gib >= 1 ? 2 : kDigits - 1 - int(std::floor(std::log10(gib)));
  double scale = std::pow(10.0, decimals);
  return fmt::format("{:.{}f}", std::floor(gib * scale) / scale, decimals);
}

}  // namespace tokamak
