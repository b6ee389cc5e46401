#include "data/pretokenizer.h"

#include <algorithm>

#include "data/characters.h"

namespace tokamak {

namespace {

using enum CharClass;

constexpr CharSet kLetters = char_set(kUpper, kLower, kLetter);
constexpr CharSet kNumbers = char_set(kNumber);
constexpr CharSet kOthers = char_set(kOther, kMark);
constexpr CharSet kSpaces = char_set(kSpace);
// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and [\p{Ll}\p{Lm}\p{Lo}\p{M}] of o200k.
constexpr CharSet kUpperPart = char_set(kUpper, kLetter, kMark);
constexpr CharSet kLowerPart = char_set(kLower, kLetter, kMark);

bool is_newline(char c) { return c == '\n' || c == '\r'; }

bool has_at(std::string_view text, size_t at, CharSet set) {
  return at < text.size() && set.has(character_at(text, at).kind);
}

size_t skip(std::string_view text, size_t at, CharSet set) {
  while (at < text.size()) {
    Character next = character_at(text, at);
    if (!set.has(next.kind)) break;
    at += next.length;
  }
  return at;
}

/// The length of '(?:[sdmt]|ll|ve|re) at `at`, 0 if there is none.
size_t contraction_length(std::string_view text, size_t at) {
  text = text.substr(at, 3);
  if (text.size() < 2 || text[0] != '\'') return 0;
  char c = text[1], d = text.size() > 2 ? text[2] : '\0';
  if (c == 's' || c == 't' || c == 'm' || c == 'd') return 2;
  return (c == 'r' && d == 'e') || (c == 'v' && d == 'e') || (c == 'l' && d == 'l') ? 3 : 0;
}

/// The same in upper or lower case, where the long s (U+017F) counts as an s.
size_t any_case_contraction_length(std::string_view text, size_t at) {
  if (at >= text.size() || text[at] != '\'') return 0;
  if (text.substr(at + 1, 2) == "\xC5\xBF") return 3;
  char lower[3];
  size_t count = text.copy(lower, 3, at);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return contraction_length({lower, count}, 0);
}

enum class Newlines { kOrdinary, kEndWords, kEndWordsBeforeTheEnd };

/// \s+(?!\S)|\s, after \s*[\r\n]+ if line breaks end words, after \s++$ if they do so only before the end of the text.
size_t space_end(std::string_view text, size_t begin, Newlines newlines) {
  size_t at = begin, last = begin, after_newline = 0;
  while (has_at(text, at, kSpaces)) {
    last = at;
    at += character_at(text, at).length;
    if (is_newline(text[last])) after_newline = at;
  }
  bool at_end = at == text.size();
  if (newlines == Newlines::kEndWordsBeforeTheEnd && at_end) return at;
  if (newlines != Newlines::kOrdinary && after_newline > 0) return after_newline;
  return at_end || last == begin ? at : last;
}

///  ?[^\s\p{L}\p{N}]+ and then any of `tail`; `begin` if there is no match.
size_t symbols_end(std::string_view text, size_t begin, std::string_view tail) {
  size_t at = begin + (text[begin] == ' ');
  size_t end = skip(text, at, kOthers);
  if (end == at) return begin;
  return std::min(text.find_first_not_of(tail, end), text.size());
}

/// \p{N}{1,most}; `begin` if there is no match.
size_t short_number_end(std::string_view text, size_t begin, int most) {
  size_t at = begin;
  for (int digits = 0; digits < most && has_at(text, at, kNumbers); ++digits) at += character_at(text, at).length;
  return at;
}

/// '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2_word_end(std::string_view text, size_t begin) {
  if (size_t length = contraction_length(text, begin)) return begin + length;
  size_t at = begin + (text[begin] == ' ');
  for (CharSet set : {kLetters, kNumbers, kOthers})
    if (size_t end = skip(text, at, set); end > at) return end;
  return space_end(text, begin, Newlines::kOrdinary);
}

/// '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*, then white space; numbers
/// have up to `most_digits` digits.
size_t gpt4_word_end(std::string_view text, size_t begin, Newlines newlines, int most_digits = 3) {
  if (size_t length = any_case_contraction_length(text, begin)) return begin + length;
  Character first = character_at(text, begin);
  if (first.kind == kNumber) return short_number_end(text, begin, most_digits);
  size_t next = begin + first.length;
  if (kLetters.has(first.kind)) return skip(text, next, kLetters);
  if (!is_newline(text[begin]))
    if (size_t end = skip(text, next, kLetters); end > next) return end;
  if (size_t end = symbols_end(text, begin, "\r\n"); end > begin) return end;
  return space_end(text, begin, newlines);
}

size_t cl100k_word_end(std::string_view text, size_t begin) {
  return gpt4_word_end(text, begin, Newlines::kEndWordsBeforeTheEnd);
}

size_t llama3_word_end(std::string_view text, size_t begin) { return gpt4_word_end(text, begin, Newlines::kEndWords); }

size_t qwen2_word_end(std::string_view text, size_t begin) {
  return gpt4_word_end(text, begin, Newlines::kEndWords, 1);
}

/// A digit, or what kGpt2's expression finds in the text up to the next one, which it takes for the end.
size_t digits_word_end(std::string_view text, size_t begin) {
  if (has_at(text, begin, kNumbers)) return begin + character_at(text, begin).length;
  if (size_t length = contraction_length(text, begin)) return begin + length;
  size_t at = begin + (text[begin] == ' ');
  for (CharSet set : {kLetters, kOthers})
    if (size_t end = skip(text, at, set); end > at) return end;
  size_t end = skip(text, begin, kSpaces);
  return has_at(text, end, kNumbers) ? end : space_end(text, begin, Newlines::kOrdinary);
}

/// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+; `begin` if there is no match.
size_t lower_ending_end(std::string_view text, size_t begin) {
  size_t at = begin, in_both = begin;  // the end of the last character that is in both sets
  while (has_at(text, at, kUpperPart)) {
    Character next = character_at(text, at);
    at += next.length;
    if (next.kind != kUpper) in_both = at;
  }
  // Without a small letter behind them the first set gives characters back until the second has one.
  size_t end = skip(text, at, kLowerPart);
  return end > at ? end : in_both;
}

/// The two alternatives of o200k for letters, without the contraction; `begin` if there is no match.
size_t cased_letters_end(std::string_view text, size_t begin) {
  Character first = character_at(text, begin);
  size_t next = begin + first.length;
  bool has_prefix = !is_newline(text[begin]) && !kLetters.has(first.kind) && first.kind != kNumber;
  if (has_prefix)
    if (size_t end = lower_ending_end(text, next); end > next) return end;
  if (size_t end = lower_ending_end(text, begin); end > begin) return end;
  if (has_prefix)
    if (size_t end = skip(text, next, kUpperPart); end > next) return end;
  return skip(text, begin, kUpperPart);
}

/// What stands in o200k's expression behind its words.
size_t o200k_rest_end(std::string_view text, size_t begin, int most_digits) {
  if (size_t end = short_number_end(text, begin, most_digits); end > begin) return end;
  if (size_t end = symbols_end(text, begin, "\r\n/"); end > begin) return end;
  return space_end(text, begin, Newlines::kEndWords);
}

size_t o200k_word_end(std::string_view text, size_t begin) {
  if (size_t end = cased_letters_end(text, begin); end > begin) return end + any_case_contraction_length(text, end);
  return o200k_rest_end(text, begin, 3);
}

size_t tekken_word_end(std::string_view text, size_t begin) {
  if (size_t end = cased_letters_end(text, begin); end > begin) return end;
  return o200k_rest_end(text, begin, 1);
}

constexpr std::string_view kGpt2Spellings[] = {
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)",
};
// tiktoken's own has \p{N}{1,3}+, which Oniguruma would read as any number of digits.
constexpr std::string_view kLlama3Spellings[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
};

constexpr PretokenizerInfo kInfos[] = {
    {Pretokenizer::kGpt2, "gpt2", gpt2_word_end,
     R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", kGpt2Spellings},
    {Pretokenizer::kCl100k,
     "cl100k",
     cl100k_word_end,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     {}},
    {Pretokenizer::kLlama3, "llama3", llama3_word_end,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kLlama3Spellings},
    {Pretokenizer::kO200k,
     "o200k",
     o200k_word_end,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {}},
    {Pretokenizer::kQwen2,
     "qwen2",
     qwen2_word_end,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {}},
    {Pretokenizer::kTekken,
     "tekken",
     tekken_word_end,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
     R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {}},
    {Pretokenizer::kDigits, "digits", digits_word_end, "", {}},
};

const PretokenizerInfo* find_info(auto matches) {
  auto found = std::find_if(std::begin(kInfos), std::end(kInfos), matches);
  return found == std::end(kInfos) ? nullptr : found;
}

std::optional<Pretokenizer> id_of(const PretokenizerInfo* info) {
  return info ? std::optional(info->id) : std::nullopt;
}

}  // namespace

std::span<const PretokenizerInfo> pretokenizers() { return kInfos; }

const PretokenizerInfo& pretokenizer_info(Pretokenizer pretokenizer) { return kInfos[size_t(pretokenizer)]; }

std::string pretokenizer_names() {
  std::string names;
  for (const PretokenizerInfo& info : kInfos) names.append(names.empty() ? "" : ", ").append(info.name);
  return names;
}

std::optional<Pretokenizer> pretokenizer_by_name(std::string_view name) {
  return id_of(find_info([&](const PretokenizerInfo& info) { return info.name == name; }));
}

std::optional<Pretokenizer> pretokenizer_by_expression(std::string_view expression) {
  return id_of(find_info([&](const PretokenizerInfo& info) {
    return !expression.empty() && (info.expression == expression || std::ranges::count(info.spellings, expression) > 0);
  }));
}

}  // namespace tokamak
