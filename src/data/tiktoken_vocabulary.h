// tiktoken's vocabulary files: a line for each token, its bytes in base64, a space and its rank, which is its id. Such
// a file has neither the markers nor the way of cutting text: the name of the encoding stands for them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/vocabulary.h"

namespace tokamak {

/// What tiktoken's code knows of an encoding: https://github.com/openai/tiktoken, tiktoken_ext/openai_public.py.
struct TiktokenEncoding {
  std::string name;
  Pretokenizer pretokenizer = Pretokenizer::kGpt2;
  size_t tokens = 0;                                     // in its file; 0: any number
  std::vector<std::pair<std::string, int32_t>> markers;  // none: <|endoftext|> comes after the last token
};

/// An encoding by its name (cl100k_base), or any vocabulary cut as a pretokenizer of this name does (cl100k).
/// A UserError that lists the names if there is none; `file` is for its message.
TiktokenEncoding tiktoken_encoding(std::string_view name, std::string_view file);

/// The names that tiktoken_encoding() knows.
std::vector<std::string> tiktoken_encoding_names();

/// Parses the file's text; `name` is for messages, which name the line. tiktoken merges the neighbours whose joined
/// bytes have the lowest rank, whichever they are: here all pairs of tokens that make a token, of one rank.
Vocabulary parse_tiktoken_vocabulary(std::string_view text, std::string_view name, const TiktokenEncoding& encoding);

}  // namespace tokamak
