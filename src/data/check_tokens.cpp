#include "data/check_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "data/marked_tokens.h"

namespace tokamak {

namespace {

constexpr int64_t kWindows = 16;

/// The file and the place of token `at` of a window.
std::string describe_place(WindowReader& reader, int64_t window, int64_t at) {
  for (const FileRange& range : reader.place(window)) {
    if (at < range.length) return fmt::format("{}: token {}", range.path, range.begin + at);
    at -= range.length;
  }
  return fmt::format("window {}", window);
}

}  // namespace

// As unsigned numbers, negative ids are large ones.
void check_tokens(WindowReader& reader, int64_t window, std::span<const int32_t> tokens, int64_t vocab_size,
                  bool marked) {
  uint32_t largest = 0;
  for (int32_t id : tokens) largest = std::max(largest, uint32_t(marked ? id_of(id) : id));
  if (largest < uint64_t(vocab_size)) return;
  auto at = std::find_if(tokens.begin(), tokens.end(),
                         [&](int32_t id) { return uint32_t(marked ? id_of(id) : id) == largest; }) -
            tokens.begin();
  user_error(
      "[data] {}: expected token ids below {} (model.vocab), got {}; the file is damaged (copy it again, or run "
      "`prepare` again), of another vocabulary, or of another data.token_type",
      describe_place(reader, window, at), vocab_size, largest);
}

void check_some_tokens(const Corpus& corpus, int64_t vocab_size) {
  std::vector<int32_t> tokens(size_t(corpus.context()) + 1);
  for (const auto& dataset : corpus.datasets()) {
    if (dataset->facts().vocab_size > 0) continue;  // known, and compared with the model's when it was opened
    auto reader = dataset->reader();
    int64_t windows = dataset->windows(), checked = std::min(kWindows, windows);
    for (int64_t i = 0; i < checked; ++i) {
      int64_t window = checked == 1 ? 0 : i * (windows - 1) / (checked - 1);
      reader->read(window, tokens);
      check_tokens(*reader, window, tokens, vocab_size, dataset->facts().marked);
    }
  }
}

}  // namespace tokamak
