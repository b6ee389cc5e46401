#include "data/tiktoken_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "data/byte_alphabet.h"
#include "data/pretokenizer.h"
#include "data/vocabulary_builder.h"

namespace tokamak {

namespace {

// Real tokens have up to a few hundred bytes. All cuts of a token are tried, so a damaged file must not have huge ones.
constexpr size_t kMaxTokenBytes = 4096;

std::vector<TiktokenEncoding> encodings() {
  using enum Pretokenizer;
  return {
      {"r50k_base", kGpt2, 50256, {{kEndOfText, 50256}}},
      {"p50k_base", kGpt2, 50280, {{kEndOfText, 50256}}},
      {"p50k_edit",
       kGpt2,
       50280,
       {{kEndOfText, 50256}, {"<|fim_prefix|>", 50281}, {"<|fim_middle|>", 50282}, {"<|fim_suffix|>", 50283}}},
      {"cl100k_base",
       kCl100k,
       100256,
       {{kEndOfText, 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {"o200k_base", kO200k, 199998, {{kEndOfText, 199999}, {"<|endofprompt|>", 200018}}},
  };
}

std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static constexpr auto kValues = [&] {
    std::array<int8_t, 256> values;
    values.fill(-1);
    for (size_t i = 0; i < kDigits.size(); ++i) values[uint8_t(kDigits[i])] = int8_t(i);
    return values;
  }();
  if (text.size() % 4 != 0 || text.empty()) return std::nullopt;
  while (text.ends_with('=') && text.size() % 4 != 2) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0, count = 0;
  for (char c : text) {
    int8_t value = kValues[uint8_t(c)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | uint32_t(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += char(bits >> count & 0xFF);
  }
  return bytes;
}

/// Adds the token of a line and gives its bytes.
void add_line(std::string_view line, std::string_view name, size_t number, VocabularyBuilder& builder) {
  size_t space = line.find(' ');
  int64_t rank = -1;
  std::optional<std::string> token;
  if (space != line.npos) {
    token = decode_base64(line.substr(0, space));
    const char* end = line.data() + line.size();
    auto [stop, error] = std::from_chars(line.data() + space + 1, end, rank);
    if (error != std::errc() || stop != end) token.reset();
  }
  if (!token)
    user_error(
        "[tokenizer] {}:{}: expected a token in base64, a space and its rank, got '{}'; the file is damaged: "
        "fetch it again",
        name, number, line.substr(0, 80));
  if (token->size() > kMaxTokenBytes)
    user_error("[tokenizer] {}:{}: expected tokens of at most {} bytes, got {}; the file is damaged: fetch it again",
               name, number, kMaxTokenBytes, token->size());
  builder.add_token(spell_bytes(*token), rank);
}

/// All pairs of tokens that make a token, in the order of what they make.
std::vector<Merge> all_merges(const Vocabulary& vocabulary) {
  std::unordered_map<std::string_view, int32_t> ids;
  std::vector<bool> special(vocabulary.tokens.size());
  for (int32_t id : vocabulary.special) special[size_t(id)] = true;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (!special[id]) ids.emplace(vocabulary.tokens[id], int32_t(id));
  std::vector<Merge> merges;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    std::string_view token = vocabulary.tokens[id];
    for (size_t cut = 1; cut < token.size() && !special[id]; ++cut) {
      auto left = ids.find(token.substr(0, cut)), right = ids.find(token.substr(cut));
      if (left != ids.end() && right != ids.end()) merges.push_back({left->second, right->second, int32_t(id)});
    }
  }
  return merges;
}

}  // namespace

std::vector<std::string> tiktoken_encoding_names() {
  std::vector<std::string> names;
  for (const TiktokenEncoding& encoding : encodings()) names.push_back(encoding.name);
  for (const PretokenizerInfo& info : pretokenizers())
    if (std::ranges::count(names, info.name) == 0) names.emplace_back(info.name);
  return names;
}

TiktokenEncoding tiktoken_encoding(std::string_view name, std::string_view file) {
  for (const TiktokenEncoding& encoding : encodings())
    if (encoding.name == name) return encoding;
  if (auto pretokenizer = pretokenizer_by_name(name)) return {std::string(name), *pretokenizer, 0, {}};
  user_error(
      "[tokenizer] {}: expected the name of an encoding, as the file's name or after an '@' behind it, got '{}'; "
      "write {}@NAME with one of {}",
      file, name, file, fmt::join(tiktoken_encoding_names(), ", "));
}

Vocabulary parse_tiktoken_vocabulary(std::string_view text, std::string_view name, const TiktokenEncoding& encoding) {
  VocabularyBuilder builder(name);
  builder.set_whole_words();
  size_t tokens = 0;
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) {
      add_line(line, name, number, builder);
      ++tokens;
    }
    begin = end + 1;
  }
  if (tokens == 0 || (encoding.tokens > 0 && tokens != encoding.tokens))
    user_error(
        "[tokenizer] {}: expected {} tokens, as {} has, got {}; the file is damaged or of another encoding: fetch "
        "it again, or name the right one behind an '@'",
        name, encoding.tokens > 0 ? std::to_string(encoding.tokens) : "some", encoding.name, tokens);
  for (const auto& [marker, id] : encoding.markers) builder.add_special(marker, id);
  if (encoding.markers.empty()) builder.add_special(kEndOfText, builder.size());
  Vocabulary vocabulary = builder.build();
  add_markers(vocabulary);
  vocabulary.pretokenizer = encoding.pretokenizer;
  vocabulary.merges = all_merges(vocabulary);
  vocabulary.tied_merges = true;
  return vocabulary;
}

}  // namespace tokamak
