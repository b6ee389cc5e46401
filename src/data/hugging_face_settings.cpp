#include "data/hugging_face_settings.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "data/hugging_face_fields.h"

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kAddedFile = "added_tokens.json";
constexpr const char* kSpecialFile = "special_tokens_map.json";
constexpr const char* kAddedField = "added_tokens_decoder";

/// The object in a file; null where there is no such file.
json read_object(const fs::path& file) {
  if (!fs::exists(file)) return nullptr;
  std::string text = read_file(file);
  json object = parse_json(text);
  if (!object.is_object())
    user_error("[tokenizer] {}: expected a JSON object, got something else{}; repair the file, or move it away",
               file.string(), json_error(text));
  return object;
}

[[noreturn]] void refuse(const fs::path& file, std::string_view field, std::string_view expected, const json& got) {
  user_error(
      "[tokenizer] {}: expected {} as {}, got {}; change it, if the vocabulary is to be used so, or use another one",
      file.string(), expected, field, format_json(got).substr(0, 80));
}

/// Adds the texts of a string, of a token as an object, or of a list of them.
void add_texts(const json& value, std::set<std::string>& texts) {
  const json& text = value.is_object() ? field(value, "content") : value;
  if (text.is_string()) texts.insert(text.get<std::string>());
  if (value.is_array())
    for (const json& one : value) add_texts(one, texts);
}

/// The texts that the fields of special tokens have: bos_token, additional_special_tokens and their like.
void add_special_texts(const json& object, std::set<std::string>& texts) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items())
    if (key.ends_with("_token") || key.ends_with("_tokens")) add_texts(value, texts);
}

int64_t parse_id(const fs::path& file, const std::string& text) {
  int64_t id = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0 || id > INT32_MAX)
    refuse(file, kAddedField, "ids as keys", text);
  return id;
}

std::vector<NamedToken> decoder_tokens(const fs::path& file, const json& list) {
  if (!list.is_object()) refuse(file, kAddedField, "an object from id to token", list);
  std::vector<NamedToken> tokens;
  for (const auto& [key, value] : list.items()) {
    const json& text = field(value, "content");
    if (!text.is_string()) refuse(file, kAddedField, "tokens with a content", value);
    AddedToken token = read_added_token(value, fmt::format("{}: {}", file.string(), kAddedField));
    token.id = int32_t(parse_id(file, key));
    tokens.push_back({text.get<std::string>(), token});
  }
  return tokens;
}

std::vector<NamedToken> listed_tokens(const fs::path& file, const json& list, const std::set<std::string>& special) {
  std::vector<NamedToken> tokens;
  for (const auto& [text, id] : list.items()) {
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX) refuse(file, text, "an id", id);
    bool is_special = special.contains(text);
    tokens.push_back({text, {.id = id.get<int32_t>(), .special = is_special, .normalized = !is_special}});
  }
  return tokens;
}

}  // namespace

HuggingFaceSettings read_hugging_face_settings(const fs::path& folder) {
  json config = read_object(folder / kConfigFile), added = read_object(folder / kAddedFile);
  if (const json& prefix = field(config, "add_prefix_space"); !is_off(prefix))
    refuse(folder / kConfigFile, "add_prefix_space", "false", prefix);
  HuggingFaceSettings settings;
  if (const json& decoder = field(config, kAddedField); !decoder.is_null()) {
    settings = {(folder / kConfigFile).string(), decoder_tokens(folder / kConfigFile, decoder), true};
  } else if (!added.is_null()) {
    std::set<std::string> special;
    add_special_texts(config, special);
    add_special_texts(read_object(folder / kSpecialFile), special);
    settings = {(folder / kAddedFile).string(), listed_tokens(folder / kAddedFile, added, special), false};
  }
  std::ranges::sort(settings.added, {}, [](const NamedToken& token) { return token.token.id; });
  return settings;
}

void expect_same_tokens(const Vocabulary& vocabulary, std::string_view name, const HuggingFaceSettings& settings) {
  for (const NamedToken& token : settings.added) {
    auto same = [&](const AddedToken& own) {
      return own.id == token.token.id && vocabulary.tokens[size_t(own.id)] == token.text &&
             (own == token.token || !settings.tells_all);
    };
    if (std::ranges::none_of(vocabulary.added, same))
      user_error(
          "[tokenizer] {}: expected the added_tokens of {}, got '{}' with the id {}, which is not among them with "
          "these settings; mend one of the two files, or move {} away",
          settings.file, name, token.text, token.token.id, settings.file);
  }
}

}  // namespace tokamak
