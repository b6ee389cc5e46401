#include "data/document_starts.h"

#include <algorithm>

#include "base/error.h"
#include "data/marked_tokens.h"

namespace tokamak {

std::vector<int32_t> document_starts(std::span<const int32_t> tokens, int64_t context, int32_t end_of_text) {
  TOKAMAK_CHECK(context > 0 && int64_t(tokens.size()) % context == 0, "{} tokens in samples of {}", tokens.size(),
                context);
  std::vector<int32_t> starts(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    size_t place = i % size_t(context);
    starts[i] = place == 0 ? 0 : tokens[i - 1] == end_of_text ? int32_t(place) : starts[i - 1];
  }
  return starts;
}

void cut_starts(std::span<int32_t> starts, int64_t context, int64_t length) {
  TOKAMAK_CHECK(length > 0 && context % length == 0, "windows of {} tokens in sequences of {}", context, length);
  for (size_t i = 0; i < starts.size(); ++i) {
    auto place = int64_t(i) % context;
    starts[i] = int32_t(std::max<int64_t>(starts[i] - place / length * length, 0));
  }
}

void hide_first_tokens(std::span<const int32_t> tokens, int32_t end_of_text, std::span<int32_t> targets) {
  TOKAMAK_CHECK(tokens.size() == targets.size(), "{} tokens and {} targets", tokens.size(), targets.size());
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] == end_of_text) targets[i] = kNoTarget;
}

bool has_target(std::span<const int32_t> window, int32_t end_of_text) {
  for (size_t i = 1; i < window.size(); ++i)
    if (is_learned(window[i]) && id_of(window[i - 1]) != end_of_text) return true;
  return false;
}

int64_t count_targets(std::span<const int32_t> targets) {
  return std::count_if(targets.begin(), targets.end(), [](int32_t target) { return target >= 0; });
}

}  // namespace tokamak
