// What keeps packed documents apart: where each position's document begins, and which targets do not count.
// A document ends with its separator (the end-of-text token); the next token begins another one.
// Tests: tests/data/document_starts_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tokamak {

/// The target of a position that has none: the loss leaves it out.
inline constexpr int32_t kNoTarget = -1;

/// For each position the place within its sample at which its document begins (0 for one that began earlier), for
/// tokens of samples of `context` (T) tokens each: (B, T) -> (B, T). Ascending along each sample. A position may attend
/// to what lies from there on; two positions are in one document when they have the same start.
std::vector<int32_t> document_starts(std::span<const int32_t> tokens, int64_t context, int32_t end_of_text);

/// Starts (B, T) of windows of `context` become those of the sequences of `length`, a divisor, that they are cut into:
/// a document that a cut divides begins a second time there.
void cut_starts(std::span<int32_t> starts, int64_t context, int64_t length);

/// Targets (B, T) are the tokens one place on. Those behind a separator begin another document, which nothing before
/// them tells of: they become kNoTarget.
void hide_first_tokens(std::span<const int32_t> tokens, int32_t end_of_text, std::span<int32_t> targets);

/// Whether any token of a window (T + 1) is a target that counts: none is the first of the window, one behind the end
/// of a document, or one that is not learned (data/marked_tokens.h).
bool has_target(std::span<const int32_t> window, int32_t end_of_text);

/// How many targets are not kNoTarget.
int64_t count_targets(std::span<const int32_t> targets);

}  // namespace tokamak
