#include "data/gpt2_vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "data/byte_alphabet.h"
#include "data/vocabulary_builder.h"

namespace tokamak {

namespace {

void add_settings(const HuggingFaceSettings& settings, VocabularyBuilder& builder) {
  for (const auto& [text, token] : settings.added) {
    if (int32_t known = builder.find_token(text); known >= 0 && known != token.id)
      user_error(
          "[tokenizer] {}: expected the id {} for '{}', which the vocabulary beside it has, got {}; mend one of the "
          "two "
          "files",
          settings.file, known, text, token.id);
    builder.add_added(text, token.id, token);
  }
}

}  // namespace

Vocabulary parse_gpt2_vocabulary(std::string_view merges, std::string_view merges_name, std::string_view tokens,
                                 std::string_view tokens_name, const HuggingFaceSettings& settings) {
  VocabularyBuilder builder(fmt::format("{} with {}", merges_name, tokens_name));
  nlohmann::json object = parse_json(tokens);
  if (!object.is_object())
    user_error("[tokenizer] {}: expected a JSON object from token to id, got something else{}; fetch the file again",
               tokens_name, json_error(tokens));
  for (const auto& [spelling, id] : object.items()) {
    if (!id.is_number_integer())
      user_error("[tokenizer] {}: expected a whole number as the id of '{}', got {}", tokens_name, spelling,
                 format_json(id));
    builder.add_token(spelling, id.get<int64_t>());
  }
  for (size_t begin = 0, line = 0; begin < merges.size(); ++line) {
    size_t end = std::min(merges.find('\n', begin), merges.size());
    std::string_view pair = merges.substr(begin, end - begin);
    if (pair.ends_with('\r')) pair.remove_suffix(1);
    bool header = line == 0 && pair.starts_with("#version");
    if (!header && !pair.empty()) builder.add_merge(pair);
    begin = end + 1;
  }
  add_settings(settings, builder);
  Vocabulary vocabulary = builder.build();
  add_markers(vocabulary);
  return vocabulary;
}

std::string format_gpt2_merges(const Vocabulary& vocabulary) {
  std::string text = "#version: 0.2\n";
  for (const Merge& merge : vocabulary.merges)
    text += fmt::format("{} {}\n", spell_bytes(vocabulary.tokens[size_t(merge.left)]),
                        spell_bytes(vocabulary.tokens[size_t(merge.right)]));
  return text;
}

std::string format_gpt2_tokens(const Vocabulary& vocabulary) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  auto& entries = object.get_ref<nlohmann::ordered_json::object_t&>();
  std::vector<bool> special(vocabulary.tokens.size());
  for (int32_t id : vocabulary.special) special[size_t(id)] = true;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    // Straight into the list: assignment by key would search it, which makes writing quadratic.
    entries.push_back({special[id] ? token : spell_bytes(token), int64_t(id)});
  }
  return format_json(object);
}

}  // namespace tokamak
