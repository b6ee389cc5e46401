// Hugging Face's tokenizer.json, as far as it is byte-level BPE with a known way of cutting text into words.
#pragma once

#include <string>
#include <string_view>

#include "data/vocabulary.h"

namespace tokamak {

/// Parses the file's text; `name` is for messages. Any setting that would give other ids than ours is a UserError that
/// names it. Post-processors are not applied: no markers are added around texts.
Vocabulary parse_hugging_face_vocabulary(std::string_view text, std::string_view name);

/// The text of a tokenizer.json that Hugging Face's library opens and that gives the same ids there. (Where merges are
/// tied, which it does not know, it could differ in a run of one character that several pairs make up.)
std::string format_hugging_face_vocabulary(const Vocabulary& vocabulary);

}  // namespace tokamak
