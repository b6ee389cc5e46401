// What the tiled forward and backward pass share: sizes, packing of a head into tiles, and what queries see.
#pragma once

#include "backend/cpu/attention_blocks.h"
#include "backend/cpu/tiled_attention.h"

#include <array>
#include <cmath>
#include <cstring>

namespace tokamak::cpu {

/// Groups of 32 queries in a block of them.
inline constexpr int64_t kGroups = kQueries / kGroup;
static_assert(kQueries % kGroup == 0 && kKeys % kGroup == 0);

inline constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;

/// Elements of one packed head. All sides are padded to multiples of 32, each block of queries to whole ones; the
/// padding holds zeros.
struct TiledHead {
  int64_t time, keys, dim, padded_dim, padded_keys, padded_time;
  explicit TiledHead(const AttentionShape& s)
      : time(s.time), keys(s.zigzag().positions()), dim(s.head_dim), padded_dim(round_up(s.head_dim, kGroup)),
        padded_keys(round_up(keys, kKeys)), padded_time(QueryBlocks{s.zigzag()}.count() * kQueries) {}
  int64_t side() const { return padded_dim / kTileSide; }    // tiles of 16 along a head's columns,
  int64_t depth() const { return padded_dim / kTileDepth; }  // and of 32
  int64_t group() const { return kGroup * padded_dim; }      // elements of 32 rows
};

/// Takes pieces of bf16 from an arena of floats.
inline uint16_t* take_words(Arena& arena, int64_t words) {
  return reinterpret_cast<uint16_t*>(arena.take((words + 1) / 2));
}

/// Tiles of 32 rows of a head, in each of the forms that products take. `rows` is dense, 32 by padded_dim. Where the
/// tiles lie follows from the functions below.
inline void pack_left(const TiledHead& z, const uint16_t* rows, uint16_t* tiles) {
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t d = 0; d < z.depth(); ++d)
      for (int64_t r = 0; r < kTileSide; ++r, tiles += kTileDepth)
        std::memcpy(tiles, rows + (half * kTileSide + r) * z.padded_dim + d * kTileDepth, kTileDepth * sizeof *tiles);
}
inline void pack_right(const TiledHead& z, const uint16_t* rows, uint16_t* tiles) {
  for (int64_t d = 0; d < z.side(); ++d) pair_rows(rows + d * kTileSide, z.padded_dim, tiles + d * kTileElements);
}
inline void pack_left_transposed(const TiledHead& z, const uint16_t* rows, uint16_t* tiles) {
  alignas(64) uint16_t pairs[kTileElements];
  for (int64_t d = 0; d < z.side(); ++d) {
    pair_rows(rows + d * kTileSide, z.padded_dim, pairs);
    transpose_words(reinterpret_cast<const uint32_t*>(pairs), kTileSide,
                    reinterpret_cast<uint32_t*>(tiles + d * kTileElements));
  }
}
inline void pack_right_transposed(const TiledHead& z, const uint16_t* rows, uint16_t* tiles) {
  for (int64_t d = 0; d < z.depth(); ++d)
    for (int64_t half = 0; half < 2; ++half, tiles += kTileElements)
      transpose_words(reinterpret_cast<const uint32_t*>(rows + half * kTileSide * z.padded_dim + d * kTileDepth),
                      z.padded_dim / 2, reinterpret_cast<uint32_t*>(tiles));
}

/// Operands of what was packed like this, of as many groups of 32 rows: left ones (rows by columns, or the transpose,
/// columns by rows) and right ones (rows by columns; the transpose of a single group).
inline Tiles<const uint16_t> left_operand(const TiledHead& z, const uint16_t* tiles) {
  return {tiles, z.depth() * kTileElements, kTileElements};
}
inline Tiles<const uint16_t> left_transposed(const TiledHead& z, const uint16_t* tiles) {
  return {tiles, kTileElements, z.group()};
}
inline Tiles<const uint16_t> right_operand(const TiledHead& z, const uint16_t* tiles) {
  return {tiles, z.group(), kTileElements};
}
inline Tiles<const uint16_t> right_transposed(const uint16_t* tiles) {
  return {tiles, 2 * kTileElements, kTileElements};
}

/// Rows [begin, begin + 32) of a head, dense, with zeros from `end` on.
template <typename Rows>
void gather_rows(const TiledHead& z, const Rows& rows, int64_t begin, int64_t end, uint16_t* to) {
  for (int64_t t = begin; t < begin + kGroup; ++t, to += z.padded_dim) {
    int64_t dim = t < end ? z.dim : 0;
    if (dim > 0) std::memcpy(to, rows(t), size_t(dim) * sizeof *to);
    std::memset(to + dim, 0, size_t(z.padded_dim - dim) * sizeof *to);
  }
}

/// Dense rows back to rows [begin, end) of a head.
template <typename Rows>
void scatter_rows(const TiledHead& z, const uint16_t* from, int64_t begin, int64_t end, const Rows& rows) {
  for (int64_t t = begin; t < end; ++t, from += z.padded_dim) std::memcpy(rows(t), from, size_t(z.dim) * sizeof *from);
}

/// Which keys each of a block's queries sees. Behind the last query the rest of its group sees what that one does.
struct BlockSight {
  int32_t begin[kQueries], end[kQueries];

  BlockSight(const Visibility& visible, Range block) {
    for (int64_t r = 0; r < kQueries; ++r) {
      Range seen = visible.keys(std::min(block.begin + r, block.end - 1));
      begin[r] = int32_t(seen.begin);
      end[r] = int32_t(seen.end);
    }
  }
  /// Those that the queries of a group see together, which begin in one order.
  Range of_group(int64_t group) const {
    const int32_t *first = begin + group * kGroup, *last = end + group * kGroup;
    return {*std::min_element(first, first + kGroup), *std::max_element(last, last + kGroup)};
  }
  /// Ranges of a group's queries relative to a key.
  void from_key(int64_t group, int64_t key, int32_t* begins, int32_t* ends) const {
    for (int64_t r = 0; r < kGroup; ++r) {
      begins[r] = begin[group * kGroup + r] - int32_t(key);
      ends[r] = end[group * kGroup + r] - int32_t(key);
    }
  }
};

/// Dropout's factors of a group's queries, the first at `position` of the sequence, and keys [key, key + count), a
/// multiple of 32: (2, count, 16), as scores lie. `key` is a multiple of 32. Where `position` is one of 16, a draw's
/// eight numbers are all among them.
inline void group_dropout_factors(const AttentionDropout& dropout, int64_t positions, int64_t head, int64_t position,
                                  int64_t key, int64_t count, float* factors) {
  MatrixRandom random(dropout.key, dropout.random_stream, positions);
  uint32_t threshold = dropout_threshold(dropout.p);
  auto kept = float(dropout_factor(dropout.p));
  int64_t matrix = dropout.place(head);
  auto place = [&](int64_t r, int64_t j) { return factors + (r / kTileSide * count + j) * kTileSide + r % kTileSide; };
  if (position % kTileSide != 0) {
    for (int64_t r = 0; r < kGroup; ++r)
      for (int64_t j = 0; j < count; ++j) *place(r, j) = random(matrix, position + r, key + j) < threshold ? 0 : kept;
    return;
  }
  for (int64_t first = 0; first < kGroup; first += kTileSide)
    for (int64_t j = 0; j < count; j += j % 8 == 6 ? 10 : 2) {  // 0, 2, 4, 6, 16, ...
      std::array<uint32_t, 8> numbers[8];
      for (int64_t r = 0; r < 8; ++r) numbers[r] = random.draw(matrix, position + first + r, key + j);
      for (int64_t n = 0; n < 8; ++n) {  // of the same row or that 8 below, of the next key, of the key 8 behind
        float* to = place(first + n % 4 / 2 * 8, j + n / 4 + n % 2 * 8);
        for (int64_t r = 0; r < 8; ++r) to[r] = numbers[r][size_t(n)] < threshold ? 0 : kept;
      }
    }
}

}  // namespace tokamak::cpu
