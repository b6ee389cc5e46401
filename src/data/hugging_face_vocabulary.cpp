#include "data/hugging_face_vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "data/byte_alphabet.h"
#include "data/gpt2_vocabulary.h"
#include "data/hugging_face_fields.h"
#include "data/pretokenizer.h"
#include "data/vocabulary_builder.h"

namespace tokamak {

namespace {

using nlohmann::json;

// Ours: Hugging Face's library does not know it and skips it.
constexpr const char* kTiedMerges = "tied_merges";

[[noreturn]] void refuse(std::string_view name, std::string_view field, std::string_view expected, const json& got) {
  user_error(
      "[tokenizer] {}: expected {} in {}, got {}; only byte-level BPE is supported, with text cut into words as {} "
      "do",
      name, expected, field, format_json(got).substr(0, 80), pretokenizer_names());
}

/// A setting that must be off.
void expect_off(std::string_view name, const json& object, const char* where, const char* key) {
  if (const json& value = field(object, key); !is_off(value))
    refuse(name, fmt::format("{}{}", where, key), "null", value);
}

void check_settings(const json& root, std::string_view name) {
  const json& model = root["model"];
  json type = field(model, "type");
  if (!type.is_null() && type != "BPE") refuse(name, "model.type", "\"BPE\"", type);
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"})
    expect_off(name, model, "model.", key);
  // The last two would make ids fewer or more; what a run reads is cut into samples in its own way.
  for (const char* key : {"truncation", "padding"}) expect_off(name, root, "", key);
}

/// Whether text is brought into the form NFC; no other normalizer is known.
bool find_nfc(const json& normalizer, std::string_view name) {
  if (is_off(normalizer)) return false;
  if (field(normalizer, "type") == "NFC") return true;
  const json& steps = field(normalizer, "normalizers");
  if (field(normalizer, "type") != "Sequence" || !steps.is_array() || steps.size() > 1)
    refuse(name, "normalizer", "null or NFC", normalizer);
  return !steps.empty() && find_nfc(steps[0], name);
}

void check_byte_level(const json& step, std::string_view name, bool use_regex) {
  if (field(step, "type") != "ByteLevel") refuse(name, "pre_tokenizer", "the type \"ByteLevel\"", step);
  expect_off(name, step, "pre_tokenizer.", "add_prefix_space");
  json given = field(step, "use_regex");  // true where it is absent
  if ((given.is_null() || given == true) != use_regex)
    refuse(name, "pre_tokenizer.use_regex", use_regex ? "true" : "false", given);
}

/// Either ByteLevel, which cuts as GPT-2 does, alone or in what lies between Digits, or a Split with one of the known
/// expressions and then ByteLevel.
Pretokenizer find_pretokenizer(const json& cutter, std::string_view name) {
  if (field(cutter, "type") != "Sequence") {
    check_byte_level(cutter, name, true);
    return Pretokenizer::kGpt2;
  }
  json steps = field(cutter, "pretokenizers");
  if (steps.is_array() && steps.size() == 2 && field(steps[0], "type") == "Digits") {
    if (field(steps[0], "individual_digits") != true) refuse(name, "pre_tokenizer.individual_digits", "true", steps[0]);
    check_byte_level(steps[1], name, true);
    return Pretokenizer::kDigits;
  }
  if (!steps.is_array() || steps.size() != 2 || field(steps[0], "type") != "Split")
    refuse(name, "pre_tokenizer", "a Split and a ByteLevel", steps);
  check_byte_level(steps[1], name, false);
  // Every character is in a match, so that taking the matches out as words is the same as isolating them.
  json behavior = field(steps[0], "behavior"), invert = field(steps[0], "invert");
  bool isolated = behavior == "Isolated" && invert != true, kept = behavior == "Removed" && invert == true;
  if (!isolated && !kept) refuse(name, "pre_tokenizer.behavior", "\"Isolated\"", steps[0]);
  json expression = field(field(steps[0], "pattern"), "Regex");
  auto found =
      expression.is_string() ? pretokenizer_by_expression(expression.get_ref<const std::string&>()) : std::nullopt;
  if (!found) refuse(name, "pre_tokenizer.pattern.Regex", "a known expression", expression);
  return *found;
}

json format_pretokenizer(Pretokenizer pretokenizer) {
  json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  if (pretokenizer == Pretokenizer::kGpt2) return byte_level;
  if (pretokenizer == Pretokenizer::kDigits) {
    json digits = {{"type", "Digits"}, {"individual_digits", true}};
    return {{"type", "Sequence"}, {"pretokenizers", {digits, byte_level}}};
  }
  byte_level["use_regex"] = false;
  json split = {{"type", "Split"},
                {"pattern", {{"Regex", pretokenizer_info(pretokenizer).expression}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}};
}

void add_model(const json& model, std::string_view name, VocabularyBuilder& builder) {
  const json &tokens = field(model, "vocab"), &merges = field(model, "merges");
  if (!tokens.is_object()) refuse(name, "model.vocab", "an object from token to id", tokens);
  if (!merges.is_array()) refuse(name, "model.merges", "a list", merges);
  for (const auto& [spelling, id] : tokens.items()) {
    if (!id.is_number_integer()) refuse(name, "model.vocab", "whole numbers as ids", id);
    builder.add_token(spelling, id.get<int64_t>());
  }
  for (const json& merge : merges) {
    if (merge.is_string()) {
      builder.add_merge(merge.get_ref<const std::string&>());
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      builder.add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
    } else {
      refuse(name, "model.merges", "merges as \"left right\" or [\"left\", \"right\"]", merge);
    }
  }
}

/// Adds the tokens as Hugging Face's library does: it goes by their texts, whatever ids the file names. One that is in
/// the vocabulary has the id there, the others are numbered from the vocabulary's size on.
int32_t add_added_tokens(const json& tokens, std::string_view name, VocabularyBuilder& builder) {
  if (!tokens.is_null() && !tokens.is_array()) refuse(name, "added_tokens", "a list", tokens);
  int32_t count = 0;
  int64_t largest = -1;
  for (const json& token : tokens) {
    const json &content = field(token, "content"), &id = field(token, "id");
    if (!content.is_string() || !id.is_number_integer()) refuse(name, "added_tokens", "content and id", token);
    const std::string& text = content.get_ref<const std::string&>();
    int64_t known = builder.find_token(text);
    int64_t expected = known >= 0 ? known : std::max<int64_t>(largest + 1, builder.token_count());
    if (id != expected)
      user_error(
          "[tokenizer] {}: expected the id {} in added_tokens for '{}', as Hugging Face's library numbers them, got "
          "{}; "
          "let that library write the file anew, or put the token into model.vocab",
          name, expected, text, format_json(id));
    builder.add_added(text, expected, read_added_token(token, fmt::format("{}: added_tokens", name)));
    largest = std::max(largest, expected);
    if (known < 0) ++count;
  }
  return count;
}

json format_added_token(const AddedToken& token, const std::string& text) {
  return {{"id", token.id},          {"content", text},        {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip}, {"normalized", token.normalized},
          {"special", token.special}};
}

/// By id, as tokens outside the vocabulary are numbered in the order of the list.
json format_added_tokens(const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens = vocabulary.added;
  std::ranges::sort(tokens, {}, &AddedToken::id);
  json list = json::array();
  for (const AddedToken& token : tokens) list.push_back(format_added_token(token, vocabulary.tokens[size_t(token.id)]));
  return list;
}

json format_tokens(const Vocabulary& vocabulary) {
  json tokens = parse_json(format_gpt2_tokens(vocabulary));
  size_t known = vocabulary.tokens.size() - size_t(vocabulary.only_added);
  for (size_t id = known; id < vocabulary.tokens.size(); ++id) tokens.erase(vocabulary.tokens[id]);
  return tokens;
}

}  // namespace

Vocabulary parse_hugging_face_vocabulary(std::string_view text, std::string_view name) {
  json root = parse_json(text);
  if (!root.is_object() || !root.contains("model"))
    user_error(
        "[tokenizer] {}: expected a JSON object with a field `model`, got something else{}; name a tokenizer.json "
        "as Hugging Face's tokenizers library writes it",
        name, json_error(text));
  check_settings(root, name);
  Pretokenizer pretokenizer = find_pretokenizer(field(root, "pre_tokenizer"), name);
  VocabularyBuilder builder(name);
  if (field(root["model"], "ignore_merges") == true) builder.set_whole_words();
  add_model(root["model"], name, builder);
  int32_t only_added = add_added_tokens(field(root, "added_tokens"), name, builder);
  Vocabulary vocabulary = builder.build();
  vocabulary.only_added = only_added;
  vocabulary.pretokenizer = pretokenizer;
  vocabulary.nfc = find_nfc(field(root, "normalizer"), name);
  vocabulary.tied_merges = field(root["model"], kTiedMerges) == true;
  return vocabulary;
}

std::string format_hugging_face_vocabulary(const Vocabulary& vocabulary) {
  json merges = json::array();
  for (const Merge& merge : vocabulary.merges)
    merges.push_back(spell_bytes(vocabulary.tokens[size_t(merge.left)]) + " " +
                     spell_bytes(vocabulary.tokens[size_t(merge.right)]));
  json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  json model = {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", nullptr},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"ignore_merges", vocabulary.whole_words},
                {"vocab", format_tokens(vocabulary)},
                {"merges", merges}};
  if (vocabulary.tied_merges) model[kTiedMerges] = true;
  json root = {{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", format_added_tokens(vocabulary)},
               {"normalizer", vocabulary.nfc ? json{{"type", "NFC"}} : json()},
               {"pre_tokenizer", format_pretokenizer(vocabulary.pretokenizer)},
               {"post_processor", byte_level},
               {"decoder", byte_level},
               {"model", model}};
  return format_json(root, 1);
}

}  // namespace tokamak
