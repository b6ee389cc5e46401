// A byte-level BPE vocabulary as plain data: what vocabulary files hold, what training makes, what a Tokenizer needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

/// The marker between documents.
inline constexpr const char* kEndOfText = "<|endoftext|>";
inline constexpr const char* kLlama3EndOfText = "<|end_of_text|>";

/// How text is cut into words (data/pretokenizer.h).
enum class Pretokenizer : uint8_t {
  kGpt2,    // and r50k, p50k
  kCl100k,  // GPT-4's, as tiktoken has it
  kLlama3,  // GPT-4's in its older form: white space at the end of a text is cut after its last line break
  kO200k,   // GPT-4o's
};

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
  Pretokenizer pretokenizer = Pretokenizer::kGpt2;
  bool whole_words = false;  // a word that is a token becomes that token, whatever merges would make of it
  bool tied_merges = false;  // neighbours in `merges` with one result have one rank, so that the leftmost goes first
};

/// The bytes of text that each id stands for; markers count nothing.
inline std::vector<int32_t> text_lengths(const Vocabulary& vocabulary) {
  std::vector<int32_t> lengths;
  for (const std::string& token : vocabulary.tokens) lengths.push_back(int32_t(token.size()));
  for (int32_t id : vocabulary.special) lengths[size_t(id)] = 0;
  return lengths;
}

}  // namespace tokamak
