// Counts over a stream of tokens: how many, the smallest and largest, and how long its documents are. The stream may be
// gone through in pieces, by several threads, and the pieces joined. Tests: tests/data/token_stats_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace tokamak {

/// How many documents have which length, in powers of two.
struct LengthHistogram {
  std::array<int64_t, 63> counts = {};  // bin b counts lengths from 2^b to 2^(b+1) - 1
  int64_t documents = 0;                // of length 1 or more; empty ones do not count
  int64_t longest = 0;

  void add(int64_t length);
  void append(const LengthHistogram& other);
};

/// What is known of a piece of a stream. Documents are what lies between separators; the first and last of a piece may
/// go on in its neighbours.
class TokenStats {
 public:
  /// Without a separator the documents are not known, and lengths() stays empty.
  TokenStats() = default;
  explicit TokenStats(std::optional<int32_t> separator) : separator_(separator) {}

  void add(std::span<const int32_t> tokens);

  /// So many of them have marks (data/marked_tokens.h).
  void add_unlearned(int64_t count) { unlearned_ += count; }

  /// Joins a piece that follows this one.
  void append(const TokenStats& next);

  int64_t tokens() const { return tokens_; }
  int32_t least() const { return tokens_ > 0 ? least_ : 0; }
  int32_t most() const { return tokens_ > 0 ? most_ : 0; }
  int64_t separators() const { return separators_; }
  int64_t unlearned() const { return unlearned_; }

  /// Of the documents, as if the stream began and ended with this piece.
  LengthHistogram lengths() const;

 private:
  std::optional<int32_t> separator_;
  int64_t tokens_ = 0;
  int32_t least_ = std::numeric_limits<int32_t>::max();
  int32_t most_ = std::numeric_limits<int32_t>::min();
  int64_t separators_ = 0;
  int64_t unlearned_ = 0;
  int64_t head_ = 0;  // with a separator: tokens before the first one
  int64_t tail_ = 0;  // and after the last one
  LengthHistogram inner_;
};

}  // namespace tokamak
