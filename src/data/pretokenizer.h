// Cuts text into the words that byte-level BPE merges within, exactly as the regular expressions of known tokenizers
// do, without a regex engine. For examples see tests/data/pretokenizer_test.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/vocabulary.h"

namespace tokamak {

/// Gives the end of the word that starts at `begin` (< text.size()). Words are never empty and follow each other
/// without gaps. A byte that is not part of valid UTF-8 counts as a character of class kOther.
using WordEnd = size_t (*)(std::string_view text, size_t begin);

/// What is known of a pretokenizer. All of them agree in one thing: a plain space after a character that is not white
/// space begins a word, whatever stands before and after, so that text may be cut there and its parts encoded alone.
struct PretokenizerInfo {
  Pretokenizer id;
  std::string_view name;  // as users give it: "cl100k"
  WordEnd word_end;
  std::string_view expression;  // in the tokenizer.json that we write, Oniguruma's; empty: no Split has it
  std::span<const std::string_view> spellings;  // other expressions there that give the same words
};

std::span<const PretokenizerInfo> pretokenizers();
const PretokenizerInfo& pretokenizer_info(Pretokenizer pretokenizer);

/// "gpt2, cl100k, ...", for messages.
std::string pretokenizer_names();

/// The one of this name, or of this expression in a tokenizer.json; nothing if there is none.
std::optional<Pretokenizer> pretokenizer_by_name(std::string_view name);
std::optional<Pretokenizer> pretokenizer_by_expression(std::string_view expression);

}  // namespace tokamak
