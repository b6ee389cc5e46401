// Added tokens, found in text before it is cut into words: exactly as Hugging Face's library finds them, leftmost first
// and the longest of those, in one pass for those that are not `normalized` and then, in what is left, in one for the
// others. Tests: tests/data/added_tokens_test.cpp.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/vocabulary.h"

namespace tokamak {

/// The longest of some texts at each place of another one, by a tree of their bytes.
class LongestMatch {
 public:
  /// `value` >= 0. Of equal texts the last counts.
  void add(std::string_view text, int32_t value);

  bool is_empty() const { return nodes_.empty(); }

  struct Match {
    size_t begin, end;
    int32_t value;  // -1: there is none
  };

  /// The leftmost match that begins at `from` or later, the longest of those.
  Match find(std::string_view text, size_t from) const;

 private:
  struct Node {
    int32_t value = -1;
    std::vector<std::pair<char, int32_t>> next;  // likewise, of the other bytes
  };

  int32_t& child(int32_t node, char byte);
  int32_t find_child(int32_t node, char byte) const;

  std::array<int32_t, 256> first_ = {};  // one more than the node of a first byte; 0: there is none
  std::vector<Node> nodes_;
};

class AddedTokens {
 public:
  /// The vocabulary's.
  explicit AddedTokens(const Vocabulary& vocabulary);

  /// Whether some text has a token that is found, be markers allowed or not.
  bool finds_any(bool allow_special) const { return allow_special ? !tokens_.empty() : finds_ordinary_; }

  /// A piece of text between tokens, to be cut into words; or, with an id >= 0, a token.
  using OnPiece = std::function<void(std::string_view piece, int32_t id)>;

  /// Calls `on_piece` for each piece and token in their order; pieces in the form NFC where the vocabulary asks for it.
  /// Without `allow_special` markers are ordinary text, which
  /// all the same hides tokens that begin in it.
  void split(std::string_view text, bool allow_special, const OnPiece& on_piece) const;

  /// A token for which the text before and behind a cut (data/word_border.h) tells too little, as it may reach over the
  /// cut or depend on what lies there; empty: none. Markers do not count.
  const std::string& needs_whole_text() const { return needs_whole_text_; }

 private:
  void split_once(const LongestMatch& among, std::string_view text, bool allow_special, const OnPiece& on_piece) const;

  std::vector<AddedToken> tokens_;
  LongestMatch plain_, normalized_;  // their values are places in tokens_
  bool finds_ordinary_ = false;
  bool nfc_ = false;
  std::string needs_whole_text_;
};

}  // namespace tokamak
