#include "data/prepare_draw.h"

#include <algorithm>

#include "base/random.h"

namespace tokamak {

ValidationDraw::ValidationDraw(int64_t tokens, std::span<const int64_t> documents, double fraction, uint64_t seed)
    : tokens_(tokens), documents_(documents), fraction_(fraction), seed_(seed) {
  int64_t drawn = 0, least = 0, most = 0;
  for_each_piece([&](int64_t number, const DrawnRun&) {
    ++pieces_;
    drawn += draw(number) < fraction_;
    if (draw(number) < draw(least)) least = number;
    if (draw(number) > draw(most)) most = number;
  });
  if (fraction_ > 0 && drawn == 0) forced_ = least;
  if (pieces_ > 1 && drawn == pieces_) not_forced_ = most;
}

// Uniform in [0, 1).
double ValidationDraw::draw(int64_t number) const {
  auto random = philox4x32(seed_, uint64_t(number));
  return double((uint64_t(random[0]) << 21) ^ (random[1] >> 11)) * 0x1p-53;
}

void ValidationDraw::for_each_piece(const std::function<void(int64_t number, const DrawnRun&)>& take) const {
  int64_t number = 0;
  for (size_t d = 0; d < documents_.size(); ++d) {
    int64_t begin = d == 0 ? 0 : documents_[d], end = d + 1 < documents_.size() ? documents_[d + 1] : tokens_;
    for (bool begins = true; begin < end; begins = false) {
      int64_t next = std::min(begin + kDrawnTokens, end);
      take(number++, {.begin = begin, .end = next, .documents = begins});
      begin = next;
    }
  }
}

void ValidationDraw::for_each(const std::function<void(const DrawnRun&)>& take) const {
  DrawnRun run;
  for_each_piece([&](int64_t number, const DrawnRun& piece) {
    bool is_val = number != not_forced_ && (number == forced_ || draw(number) < fraction_);
    if (run.end > run.begin && is_val != run.is_val) {
      take(run);
      run = {.begin = piece.begin};
    }
    run.end = piece.end;
    run.is_val = is_val;
    run.documents += piece.documents;
  });
  if (run.end > run.begin) take(run);
}

}  // namespace tokamak
