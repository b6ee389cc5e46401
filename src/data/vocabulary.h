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
  kQwen2,   // as kLlama3, each digit by itself
  kTekken,  // Mistral's: as kO200k, each digit by itself, and a contraction is no part of its word
  kDigits,  // as kGpt2 in what lies between digits, each of which is cut out before: SmolLM, StarCoder
};

/// Two neighbouring tokens that become one; earlier merges go first.
struct Merge {
  int32_t left;
  int32_t right;
  int32_t result;
};

/// A token that is found in text before it is cut into words, as Hugging Face's library does it (data/added_tokens.h).
struct AddedToken {
  int32_t id = 0;
  bool special = true;       // a marker such as <|endoftext|>: found only where markers are allowed
  bool normalized = false;   // looked for after all that are not
  bool lstrip = false;       // takes the white space before it,
  bool rstrip = false;       // and behind it
  bool single_word = false;  // not found where a letter, mark, digit or underscore touches it

  bool operator==(const AddedToken&) const = default;
};

struct Vocabulary {
  std::vector<std::string> tokens;  // the bytes of each id
  std::vector<Merge> merges;        // in the order of their rank
  std::vector<int32_t> special;     // ids that neither are a byte nor made by a merge
  std::vector<AddedToken> added;    // most of them are in `special`
  int32_t only_added = 0;           // so many of the last ids: no word becomes them, even if whole words are tokens
  Pretokenizer pretokenizer = Pretokenizer::kGpt2;
  bool nfc = false;          // text is brought into Unicode's form NFC before anything but added tokens is found in it
  bool whole_words = false;  // a word that is a token becomes that token, whatever merges would make of it
  bool tied_merges = false;  // neighbours in `merges` with one result have one rank, so that the leftmost goes first
};

/// The bytes of text that each id stands for; markers count nothing, nor does what a token strips.
inline std::vector<int32_t> text_lengths(const Vocabulary& vocabulary) {
  std::vector<int32_t> lengths;
  for (const std::string& token : vocabulary.tokens) lengths.push_back(int32_t(token.size()));
  for (int32_t id : vocabulary.special) lengths[size_t(id)] = 0;
  for (const AddedToken& token : vocabulary.added)
    if (!token.special) lengths[size_t(token.id)] = int32_t(vocabulary.tokens[size_t(token.id)].size());
  return lengths;
}

/// Makes all that is in `special` a marker, unless it was added as something else: for vocabularies whose form lists
/// tokens alone.
inline void add_markers(Vocabulary& vocabulary) {
  std::vector<bool> is_added(vocabulary.tokens.size());
  for (const AddedToken& token : vocabulary.added) is_added[size_t(token.id)] = true;
  for (int32_t id : vocabulary.special)
    if (!is_added[size_t(id)]) vocabulary.added.push_back({.id = id});
}

}  // namespace tokamak
