// The rules for token files: a file opens or is a UserError, and what opens can be read, in pieces as at once.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/fuzz/fuzz_file.h"

namespace tokamak {

/// All tokens of a file; nothing if it is refused, when it is opened or when it is read.
inline std::vector<int32_t> read_all_tokens(const std::string& path, const std::string& format) {
  try {
    auto tokens = open_tokens({path}, {.format = format});
    std::vector<int32_t> all(size_t(tokens->size())), piece;
    tokens->read(0, all);
    for (size_t begin = 0; begin < all.size(); begin += piece.size()) {
      piece.resize(std::min<size_t>(begin % 7 + 1, all.size() - begin));
      tokens->read(int64_t(begin), piece);
      if (!std::equal(piece.begin(), piece.end(), all.begin() + long(begin)))
        fuzz_failure("a piece is not the whole's");
      if (tokens->place(int64_t(begin)).left != int64_t(all.size() - begin)) fuzz_failure("a place is wrong");
    }
    bool negative = std::any_of(all.begin(), all.end(), [](int32_t id) { return id < 0; });
    if (negative && !tokens->is_marked()) fuzz_failure("a negative id");  // a mark is the sign bit
    return all;
  } catch (const UserError&) {
    return {};
  }
}

/// The same tokens as documents, which must be the same, unless they are refused.
inline void fuzz_token_file(const std::string& path, const std::string& format) {
  std::vector<int32_t> all = read_all_tokens(path, format), joined;
  if (all.empty()) return;
  try {
    auto source = open_source(path, {.format = format, .part_bytes = 16});
    for (Document document; source->next(document);)
      joined.insert(joined.end(), document.tokens.begin(), document.tokens.end());
  } catch (const UserError&) {
    return;
  }
  if (joined != all) fuzz_failure("documents are not the array");
}

}  // namespace tokamak
