// A byte-level BPE vocabulary as plain data: what vocabulary files hold, what training makes, what a Tokenizer needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

/// The marker between documents.
inline constexpr const char* kEndOfText = "<|endoftext|>";

/// Two neighbouring tokens that become one; earlier merges go first.
struct Merge {
  int32_t left;
  int32_t right;
  int32_t result;
};

struct Vocabulary {
  std::vector<std::string> tokens;  // the bytes of each id
  std::vector<Merge> merges;        // in the order of their rank
  std::vector<int32_t> special;     // ids of markers such as <|endoftext|>, which no merge makes
};

}  // namespace tokamak
