#include "data/visible_text.h"

#include <fmt/core.h>

namespace tokamak {

std::string visible_text(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::string text;
  for (int32_t id : ids)
    text += id < tokenizer.vocab_size() ? tokenizer.decode({&id, 1}) : fmt::format("<|id {}|>", id);
  return text;
}

}  // namespace tokamak
