// Objects of JSON as text of which only the answers are learned: messages of a conversation through a chat template, or
// a prompt with its completion. Tests: tests/data/conversation_test.cpp.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/chat_template.h"
#include "data/vocabulary.h"

namespace tokamak {

struct LearnedText {
  std::string text;
  std::vector<TextSpan> learned;  // ascending, none of them empty, at least one
};

class ConversationReader {
 public:
  /// `markers`: texts that become one id wherever they stand, which is the template's to write. `end_of_text`: what
  /// stands between documents. Without a template only prompts and completions are read.
  ConversationReader(std::optional<ChatTemplate> chat, std::vector<std::string> markers, std::string end_of_text);

  /// Of {"messages": [{"role": ..., "content": ...}, ...]} or {"prompt": ..., "completion": ...}. What comes behind the
  /// last answer is left out, and so is the marker between documents at both ends. UserErrors begin with `place` and
  /// end with `else_do`.
  LearnedText read(std::string_view object, const std::string& place, std::string_view else_do) const;

 private:
  std::optional<ChatTemplate> chat_;
  std::vector<std::string> markers_;
  std::array<bool, 256> begins_marker_ = {};
  std::string end_of_text_;
};

/// Where a tokenizer's folder has its template, and the markers that it asks for.
inline constexpr const char* kChatTemplateFiles[] = {"chat_template.jinja", "tokenizer_config.json"};

/// The template that --chat names: own (that of the tokenizer's folder), chatml or llama3; nothing for pairs.
/// UserErrors: there is none, or it cannot be used; a named one writes markers that the vocabulary lacks.
std::optional<ChatTemplate> find_chat_template(const std::string& chat, const std::filesystem::path& tokenizer,
                                               const Vocabulary& vocabulary);

/// The texts of all markers.
std::vector<std::string> marker_texts(const Vocabulary& vocabulary);

}  // namespace tokamak
