// GPT-2's vocabulary files as text: vocab.bpe (a #version line, then one merge a line in the order of rank) and
// encoder.json (an object from the spelling of each token to its id).
#pragma once

#include <string>
#include <string_view>

#include "data/hugging_face_settings.h"
#include "data/vocabulary.h"

namespace tokamak {

/// Parses the two files; the names are for messages. `settings`: what lies beside them. All other tokens that are
/// neither bytes nor made by a merge are markers.
Vocabulary parse_gpt2_vocabulary(std::string_view merges, std::string_view merges_name, std::string_view tokens,
                                 std::string_view tokens_name, const HuggingFaceSettings& settings = {});

std::string format_gpt2_merges(const Vocabulary& vocabulary);
std::string format_gpt2_tokens(const Vocabulary& vocabulary);

}  // namespace tokamak
