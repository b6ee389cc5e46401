// What Hugging Face's files beside a vocabulary say of its tokens: tokenizer_config.json, added_tokens.json and
// special_tokens_map.json. Tests: tests/data/hugging_face_settings_test.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/vocabulary.h"

namespace tokamak {

/// An added token with its text.
struct NamedToken {
  std::string text;
  AddedToken token;

  bool operator==(const NamedToken&) const = default;
};

struct HuggingFaceSettings {
  std::string file;               // that lists the tokens, for messages
  std::vector<NamedToken> added;  // by id
  bool tells_all = false;         // of each token; else only text and id are certain
};

/// Reads the files of a folder, as far as they are there. What tokenizer_config.json lists (added_tokens_decoder) goes
/// before added_tokens.json, as in Hugging Face's libraries; of the latter's tokens those are markers that the other
/// two files name as special. UserErrors name file and field, also for `add_prefix_space`, which would give other ids.
HuggingFaceSettings read_hugging_face_settings(const std::filesystem::path& folder);

/// UserError where a vocabulary that lists its added tokens itself lacks one of these, or has another one.
void expect_same_tokens(const Vocabulary& vocabulary, std::string_view name, const HuggingFaceSettings& settings);

}  // namespace tokamak
