#include "data/extended_vocabulary.h"

#include "base/printable.h"

#include <fmt/core.h>

#include <algorithm>

namespace tokamak {

std::string not_extended(const Vocabulary& more, const Vocabulary& less) {
  if (more.tokens.size() < less.tokens.size())
    return fmt::format("it has {} tokens, and the model's has {}", more.tokens.size(), less.tokens.size());
  for (size_t id = 0; id < less.tokens.size(); ++id)
    if (more.tokens[id] != less.tokens[id])
      return fmt::format("its token {} is '{}', and the model's is '{}'", id, printable(more.tokens[id]),
                         printable(less.tokens[id]));
  auto same = [](const Merge& a, const Merge& b) {
    return a.left == b.left && a.right == b.right && a.result == b.result;
  };
  if (!std::equal(more.merges.begin(), more.merges.end(), less.merges.begin(), less.merges.end(), same))
    return "its merges are not the model's";
  if (more.pretokenizer != less.pretokenizer || more.whole_words != less.whole_words ||
      more.tied_merges != less.tied_merges || more.nfc != less.nfc)
    return "it cuts texts into words in another way";
  for (const AddedToken& token : less.added)
    if (std::find(more.added.begin(), more.added.end(), token) == more.added.end())
      return fmt::format("it does not add token {} as the model's does", token.id);
  for (size_t id = less.tokens.size(); id < more.tokens.size(); ++id) {
    bool is_added = std::any_of(more.added.begin(), more.added.end(),
                                [&](const AddedToken& token) { return token.id == int32_t(id); });
    bool is_special = std::find(more.special.begin(), more.special.end(), int32_t(id)) != more.special.end();
    if (!is_added && !is_special)
      return fmt::format("its token {}, '{}', is not an added one", id, printable(more.tokens[id]));
  }
  return "";
}

}  // namespace tokamak
