#include "data/prepare_encoder.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "data/marked_tokens.h"
#include "data/normal_form.h"

namespace tokamak {

namespace {

/// A conversation in the form NFC, with its learned pieces where they are then.
struct NormalText {
  std::string text;
  std::vector<TextSpan> learned;

  NormalText(std::string_view from, std::span<const TextSpan> spans) {
    size_t done = 0;
    for (const TextSpan& span : spans) {
      add(from.substr(done, span.begin - done));
      size_t begin = text.size();
      add(from.substr(span.begin, span.end - span.begin));
      learned.push_back({begin, text.size()});
      done = span.end;
    }
    add(from.substr(done));
  }

 private:
  void add(std::string_view piece) {
    std::string buffer;
    text += to_nfc(piece, buffer);
  }
};

}  // namespace

void PrepareEncoder::encode(PrepareBatch& batch) {
  std::string_view text = batch.text;
  std::span<const int32_t> given = batch.given;
  std::span<const TextSpan> learned = batch.learned;
  std::vector<int32_t>& ids = batch.ids;
  for (PrepareBatch::Part& part : batch.parts) {
    size_t begin = ids.size();
    if (part.separator) ids.push_back(separator_);
    check_text(part);
    if (conversations_)
      append_conversation(text.substr(0, part.text_bytes), learned.first(part.learned), part, ids);
    else
      encoder_.append(text.substr(0, part.text_bytes), ids);
    learned = learned.subspan(part.learned);
    text.remove_prefix(part.text_bytes);
    auto tokens = given.first(part.given);
    check(tokens, part);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    given = given.subspan(part.given);
    // Reading begins inside a part only where an earlier run was interrupted.
    auto first = ids.begin() + ptrdiff_t(begin);
    ids.erase(first, first + ptrdiff_t(std::min(size_t(part.place.tokens), ids.size() - begin)));
    part.ids = ids.size() - begin;
  }
}

// A token is learned when a part of it lies in a piece that is, as in Transformers.
void PrepareEncoder::append_conversation(std::string_view text, std::span<const TextSpan> learned,
                                         const PrepareBatch::Part& part, std::vector<int32_t>& ids) {
  const std::string& file = files_[size_t(part.place.file)].string();
  if (learned.empty())
    user_error(
        "[prepare] {}: expected conversations in JSON, as --chat says, got another document; prepare it by itself",
        file);
  std::optional<NormalText> normal;
  if (tokenizer_.vocabulary().nfc) {
    normal.emplace(text, learned);
    text = normal->text, learned = normal->learned;
  }
  size_t first = ids.size(), at = 0;
  encoder_.append_with_special(text, ids);
  for (size_t i = first; i < ids.size(); ++i) {
    size_t end = at + tokenizer_.vocabulary().tokens[size_t(ids[i])].size();
    while (!learned.empty() && learned.front().end <= at) learned = learned.subspan(1);
    if (learned.empty() || learned.front().begin >= end) ids[i] = with_mark(ids[i]);
    at = end;
  }
  if (at != text.size())
    user_error(
        "[prepare] {}: expected tokens that give the text of a conversation back, got {} bytes of {}; the vocabulary "
        "has "
        "an added token that takes blanks around it, by which answers cannot be told",
        file, at, text.size());
}

void PrepareEncoder::check_text(const PrepareBatch::Part& part) const {
  if (part.whole || part.text_bytes == 0 || tokenizer_.needs_whole_text().empty()) return;
  user_error(
      "[prepare] {}: expected documents of one part, got a longer one, and the vocabulary's added token '{}' may "
      "depend on "
      "text of two parts (a blank inside, lstrip, rstrip, single_word); split the file, with --separator or beforehand",
      files_[size_t(part.place.file)].string(), tokenizer_.needs_whole_text());
}

void PrepareEncoder::check(std::span<const int32_t> given, const PrepareBatch::Part& part) const {
  for (int32_t id : given)
    if (id < 0 || id >= vocab_size_)
      user_error(
          "[prepare] {}: expected token ids from 0 to {}, as the vocabulary has them, got {}; name the tokenizer that "
          "made this file with --vocab",
          files_[size_t(part.place.file)].string(), vocab_size_ - 1, id);
}

}  // namespace tokamak
