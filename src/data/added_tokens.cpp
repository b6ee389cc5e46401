#include "data/added_tokens.h"

#include <algorithm>

#include "data/characters.h"
#include "data/normal_form.h"
#include "data/word_border.h"

namespace tokamak {

namespace {

bool is_word_at(std::string_view text, size_t at) { return is_word_code(code_point_at(text, at).code); }

/// Whether a match stands alone: no word's character touches it.
bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word_at(text, character_before(text, begin))) return false;
  return end == text.size() || !is_word_at(text, end);
}

bool is_space_at(std::string_view text, size_t at) { return character_at(text, at).kind == CharClass::kSpace; }

/// Where the white space before `begin` begins, not before `least`.
size_t strip_left(std::string_view text, size_t begin, size_t least) {
  size_t at = begin;
  while (at > 0 && is_space_at(text.substr(0, begin), character_before(text, at))) at = character_before(text, at);
  return std::max(at, least);
}

size_t strip_right(std::string_view text, size_t end) {
  while (end < text.size() && is_space_at(text, end)) end += character_at(text, end).length;
  return end;
}

/// Whether a text that this is in may be cut inside it.
bool has_cut(std::string_view text) {
  for (size_t at = 1; at < text.size(); ++at)
    if (is_cut(text, at)) return true;
  return false;
}

}  // namespace

int32_t& LongestMatch::child(int32_t node, char byte) {
  if (node == 0) return first_[uint8_t(byte)];
  auto& next = nodes_[size_t(node - 1)].next;
  for (auto& [key, child] : next)
    if (key == byte) return child;
  return next.emplace_back(byte, 0).second;
}

int32_t LongestMatch::find_child(int32_t node, char byte) const {
  for (const auto& [key, child] : nodes_[size_t(node - 1)].next)
    if (key == byte) return child;
  return 0;
}

void LongestMatch::add(std::string_view text, int32_t value) {
  int32_t node = 0;
  for (char byte : text) {
    int32_t& next = child(node, byte);
    if (next == 0) next = int32_t(nodes_.size() + 1);
    node = next;
    if (size_t(node) > nodes_.size()) nodes_.emplace_back();
  }
  if (node > 0) nodes_[size_t(node - 1)].value = value;
}

LongestMatch::Match LongestMatch::find(std::string_view text, size_t from) const {
  for (size_t begin = is_empty() ? text.size() : from; begin < text.size(); ++begin) {
    int32_t node = first_[uint8_t(text[begin])];
    if (node == 0) continue;
    Match match{begin, begin, -1};
    for (size_t at = begin; node > 0; node = at < text.size() ? find_child(node, text[at]) : 0)
      if (++at; nodes_[size_t(node - 1)].value >= 0) match = {begin, at, nodes_[size_t(node - 1)].value};
    if (match.value >= 0) return match;
  }
  return {text.size(), text.size(), -1};
}

AddedTokens::AddedTokens(const Vocabulary& vocabulary) : tokens_(vocabulary.added), nfc_(vocabulary.nfc) {
  auto needs_whole = [](const AddedToken& token, const std::string& text) {
    return has_cut(text) || (!token.special && (token.lstrip || token.rstrip || token.single_word));
  };
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    const std::string& text = vocabulary.tokens[size_t(token.id)];
    std::string in_form;
    (token.normalized ? normalized_ : plain_).add(token.normalized && nfc_ ? to_nfc(text, in_form) : text, int32_t(i));
    if (!token.special) finds_ordinary_ = true;
    if (needs_whole(token, text)) needs_whole_text_ = text;
  }
  if (!finds_ordinary_) needs_whole_text_.clear();
}

void AddedTokens::split(std::string_view text, bool allow_special, const OnPiece& on_piece) const {
  std::string in_form;
  auto split_again = [&](std::string_view piece, int32_t id) {
    if (id < 0 && nfc_) piece = to_nfc(piece, in_form);
    if (id >= 0 || normalized_.is_empty())
      on_piece(piece, id);
    else
      split_once(normalized_, piece, allow_special, on_piece);
  };
  split_once(plain_, text, allow_special, split_again);
}

void AddedTokens::split_once(const LongestMatch& among, std::string_view text, bool allow_special,
                             const OnPiece& on_piece) const {
  size_t done = 0;  // may go back: white space that one token strips may be another one
  for (size_t from = 0;;) {
    LongestMatch::Match match = among.find(text, from);
    if (match.value < 0) break;
    from = match.end;
    const AddedToken& token = tokens_[size_t(match.value)];
    if (token.special && !allow_special) continue;
    if (token.single_word && !stands_alone(text, match.begin, match.end)) continue;
    size_t begin = token.lstrip ? strip_left(text, match.begin, done) : match.begin;
    size_t end = token.rstrip ? strip_right(text, match.end) : match.end;
    if (begin > end) continue;  // the token before has stripped all of it
    if (done < begin) on_piece(text.substr(done, begin - done), -1);
    if (begin < end) on_piece(text.substr(begin, end - begin), token.id);
    done = end;
  }
  if (done < text.size()) on_piece(text.substr(done), -1);
}

}  // namespace tokamak
