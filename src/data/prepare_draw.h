// Which documents of a prepared data set become its validation part, where they are drawn from all of it.
// Tests: tests/data/prepare_draw_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace tokamak {

/// What is drawn or not, as one: a document, or of a longer one so many tokens.
inline constexpr int64_t kDrawnTokens = int64_t(1) << 16;

/// Fewer that are to be expected in the validation part say little of all data.
inline constexpr int64_t kFewDrawn = 32;

/// Tokens [begin, end), of one split.
struct DrawnRun {
  int64_t begin = 0, end = 0;
  bool is_val = false;
  int64_t documents = 0;  // that begin in it
};

/// Draws each piece by itself, a function of seed and the piece's number, so that what comes behind it changes nothing.
class ValidationDraw {
 public:
  /// `documents`: where they begin, ascending, the first at 0; valid as long as the draw. `fraction` of the pieces goes
  /// to validation, but at least one, and not all where there are several.
  ValidationDraw(int64_t tokens, std::span<const int64_t> documents, double fraction, uint64_t seed);

  /// How many pieces there are.
  int64_t pieces() const { return pieces_; }
  /// Whether enough of them are to be expected in the validation part.
  bool is_enough() const { return double(pieces_) * fraction_ >= double(kFewDrawn); }

  /// All tokens in their order; neighbours are of different splits.
  void for_each(const std::function<void(const DrawnRun&)>& take) const;

 private:
  void for_each_piece(const std::function<void(int64_t number, const DrawnRun&)>& take) const;
  double draw(int64_t number) const;

  int64_t tokens_;
  std::span<const int64_t> documents_;
  double fraction_;
  uint64_t seed_;
  int64_t pieces_ = 0;
  int64_t forced_ = -1;      // a piece that is drawn, as it would be the only one
  int64_t not_forced_ = -1;  // a piece that is not, for the same reason
};

}  // namespace tokamak
