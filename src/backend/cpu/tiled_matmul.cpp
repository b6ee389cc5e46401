#include "backend/cpu/tiled_matmul.h"

#include "base/divide.h"
#include "base/parallel.h"

#include <algorithm>
#include <cstring>

namespace tokamak::cpu {
namespace {

// A piece of an operand is what is packed at once. Of a block of C, kDepth of the inner dimension at a time, 32 columns
// of B stay in L1 (16 KB) and all rows of A in L2 (256 KB), beside the block's sums (0.8 MB).
constexpr int64_t kPiece = 4096, kRows = 512, kColumns = 384, kDepth = 256;
constexpr int64_t kPairTiles = 2 * kTileElements, kPairSums = kGroup * kGroup;
constexpr int64_t kLine = 64;

// Even parts of [0, size), in groups of 32.
struct Parts {
  int64_t size, length;
  Parts(int64_t size, int64_t longest)
      : size(size), length(round_up(ceil_div(size, std::max<int64_t>(1, ceil_div(size, longest))), kGroup)) {}
  int64_t count() const { return ceil_div(size, length); }
  int64_t begin(int64_t i) const { return i * length; }
  int64_t end(int64_t i) const { return std::min(size, (i + 1) * length); }
};

// One side of the product as it lies: `outer` is a row of A or a column of B.
struct Side {
  const uint16_t* data;
  int64_t ld;
  bool inner_rows;  // its rows are those of the inner dimension
  bool left;
  int64_t outer, inner;  // sizes
};

// 32 x 32 elements of the one or the other layout as a pair of tiles.
void pack_pair(const uint16_t* from, int64_t ld, bool inner_rows, bool left, uint16_t* to) {
  alignas(kLine) uint16_t pairs[kTileElements];
  for (int64_t half = 0; half < 2; ++half, to += kTileElements) {
    const uint16_t* rows = from + half * kTileSide * (inner_rows ? 1 : ld);
    if (inner_rows) {
      pair_rows(rows, ld, left ? pairs : to);
      if (left) transpose_words(reinterpret_cast<const uint32_t*>(pairs), kTileSide, reinterpret_cast<uint32_t*>(to));
    } else if (left) {
      for (int64_t r = 0; r < kTileSide; ++r) std::memcpy(to + r * kTileDepth, rows + r * ld, kTileDepth * sizeof *to);
    } else {
      transpose_words(reinterpret_cast<const uint32_t*>(rows), ld / 2, reinterpret_cast<uint32_t*>(to));
    }
  }
}

// The same from `outer` and `inner` on, with zeros beyond the operand.
void pack_pair_of(const Side& x, int64_t outer, int64_t inner, uint16_t* to) {
  const uint16_t* from = x.data + (x.inner_rows ? inner * x.ld + outer : outer * x.ld + inner);
  int64_t outers = std::min(kGroup, x.outer - outer), inners = std::min(kGroup, x.inner - inner);
  bool whole = outers == kGroup && inners == kGroup && x.ld % 2 == 0;
  if (whole) return pack_pair(from, x.ld, x.inner_rows, x.left, to);
  alignas(kLine) uint16_t padded[kGroup * kGroup] = {};
  int64_t rows = x.inner_rows ? inners : outers, columns = x.inner_rows ? outers : inners;
  for (int64_t r = 0; r < rows; ++r) std::memcpy(padded + r * kGroup, from + r * x.ld, size_t(columns) * sizeof *from);
  pack_pair(padded, kGroup, x.inner_rows, x.left, to);
}

// Outer indices from `outer` to outer_end and inner ones from `inner` to inner_end: each 32 of the outer dimension have
// their pairs of tiles one behind the other. Goes along rows as they lie.
void pack(const Side& x, int64_t outer, int64_t outer_end, int64_t inner, int64_t inner_end, uint16_t* to) {
  int64_t outers = ceil_div(outer_end - outer, kGroup), inners = ceil_div(inner_end - inner, kGroup);
  parallel_for(x.inner_rows ? inners : outers, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t column = 0; column < (x.inner_rows ? outers : inners); ++column) {
        int64_t o = x.inner_rows ? column : row, i = x.inner_rows ? row : column;
        pack_pair_of(x, outer + o * kGroup, inner + i * kGroup, to + (o * inners + i) * kPairTiles);
      }
  });
}

int64_t packed_elements(int64_t outer, int64_t inner) {
  return round_up(std::min(outer, Parts(outer, kPiece).length), kGroup) * round_up(std::min(inner, kPiece), kGroup);
}

}  // namespace

// Packed pieces of both operands, and where sums are: those of all blocks if the inner dimension is in several pieces,
// else of a block for each thread.
struct TiledMatmul::Pieces {
  int64_t row, row_end, column, column_end, inner, inner_end;
  uint16_t *a, *b;
  float* sums;
  bool keeps_sums;
};

struct TiledMatmul::Task {
  int64_t row, row_end, column, column_end;
  int64_t columns() const { return ceil_div(column_end - column, kGroup); }
};

bool TiledMatmul::is_for(const MatmulShape& s, const MatmulOptions& o) {
  constexpr int64_t kLeast = 64, kLeastWork = 1 << 26;
  return o.a == DType::kBF16 && o.b == DType::kBF16 && std::min({s.m, s.n, s.k}) >= kLeast &&
         double(s.m) * double(s.n) * double(s.k) >= double(kLeastWork);
}

TiledMatmul::TiledMatmul(const TileUnits& units, const MatmulShape& shape, DType output)
    : units_(&units), s_(shape), output_(output) {}

int64_t TiledMatmul::sums_of_block() const { return Parts(s_.m, kRows).length * Parts(s_.n, kColumns).length; }

size_t TiledMatmul::workspace_bytes(int threads) const {
  int64_t words = packed_elements(s_.m, s_.k) + packed_elements(s_.n, s_.k);
  int64_t blocks = s_.k > kPiece ? Parts(s_.m, kRows).count() * Parts(s_.n, kColumns).count() : threads;
  return size_t(words) * sizeof(uint16_t) + size_t(blocks * sums_of_block()) * sizeof(float) + kLine;
}

void TiledMatmul::run(const void* a, const void* b, void* c, void* workspace) const {
  auto* start = reinterpret_cast<uint16_t*>(round_up(int64_t(reinterpret_cast<uintptr_t>(workspace)), kLine));
  Pieces p{};
  p.a = start;
  p.b = p.a + packed_elements(s_.m, s_.k);
  p.sums = reinterpret_cast<float*>(p.b + packed_elements(s_.n, s_.k));
  p.keeps_sums = s_.k > kPiece;
  Parts rows(s_.m, kPiece), columns(s_.n, kPiece);
  for (int64_t i = 0; i < s_.batch; ++i) {
    Side left{static_cast<const uint16_t*>(a) + i * s_.stride_a, s_.lda, s_.trans_a, true, s_.m, s_.k};
    Side right{static_cast<const uint16_t*>(b) + i * s_.stride_b, s_.ldb, !s_.trans_b, false, s_.n, s_.k};
    char* to = static_cast<char*>(c) + i * s_.stride_c * dtype_bytes(output_);
    for (p.inner = 0; p.inner < s_.k; p.inner += kPiece) {
      p.inner_end = std::min(s_.k, p.inner + kPiece);
      for (int64_t n = 0; n < columns.count(); ++n) {
        p.column = columns.begin(n), p.column_end = columns.end(n);
        pack(right, p.column, p.column_end, p.inner, p.inner_end, p.b);
        for (int64_t m = 0; m < rows.count(); ++m) {
          p.row = rows.begin(m), p.row_end = rows.end(m);
          pack(left, p.row, p.row_end, p.inner, p.inner_end, p.a);
          run_pieces(p, to);
        }
      }
    }
  }
}

// All blocks of C that the pieces are for, column by column: a thread's next block has the same columns of B.
void TiledMatmul::run_pieces(const Pieces& p, void* c) const {
  int64_t block_rows = Parts(s_.m, kRows).length, block_columns = Parts(s_.n, kColumns).length;
  int64_t rows = ceil_div(p.row_end - p.row, block_rows), columns = ceil_div(p.column_end - p.column, block_columns);
  parallel_for(rows * columns, 1, [&](int64_t begin, int64_t end, int thread) {
    units_->enter();
    for (int64_t i = begin; i < end; ++i) {
      Task t{p.row + i % rows * block_rows, 0, p.column + i / rows * block_columns, 0};
      t.row_end = std::min(p.row_end, t.row + block_rows);
      t.column_end = std::min(p.column_end, t.column + block_columns);
      int64_t place = thread;
      if (p.keeps_sums) place = t.row / block_rows * Parts(s_.n, kColumns).count() + t.column / block_columns;
      float* sums = p.sums + place * sums_of_block();
      run_block(p, t, sums);
      if (p.inner_end == s_.k) write(t, sums, c);
    }
    units_->leave();
  });
}

void TiledMatmul::run_block(const Pieces& p, const Task& t, float* sums) const {
  int64_t inners = ceil_div(p.inner_end - p.inner, kGroup);
  for (int64_t first = 0; first < inners; first += kDepth / kGroup) {
    int64_t depth = std::min(kDepth / kGroup, inners - first) * kGroup;
    for (int64_t column = t.column; column < t.column_end; column += kGroup)
      for (int64_t row = t.row; row < t.row_end; row += kGroup) {
        int64_t at = (row - t.row) / kGroup * t.columns() + (column - t.column) / kGroup;
        const uint16_t* a = p.a + ((row - p.row) / kGroup * inners + first) * kPairTiles;
        const uint16_t* b = p.b + ((column - p.column) / kGroup * inners + first) * kPairTiles;
        units_->multiply({kGroup,
                          kGroup,
                          depth,
                          {sums + at * kPairSums, 2 * kTileSums, kTileSums},
                          {a, kTileElements, kPairTiles},
                          {b, kPairTiles, kTileElements},
                          p.inner + first > 0});
      }
  }
}

void TiledMatmul::write(const Task& t, const float* sums, void* c) const {
  alignas(kLine) uint16_t rounded[kTileSide * kGroup];
  for (int64_t row = t.row; row < t.row_end; row += kTileSide)
    for (int64_t column = t.column; column < t.column_end; column += kGroup) {
      int64_t r = row - t.row, at = r / kGroup * t.columns() + (column - t.column) / kGroup;
      const float* tiles = sums + at * kPairSums + r % kGroup / kTileSide * 2 * kTileSums;
      int64_t rows = std::min(kTileSide, t.row_end - row), columns = std::min(kGroup, t.column_end - column);
      int64_t to = row * s_.ldc + column;
      if (output_ == DType::kF32) {
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t half = 0; half < columns; half += kTileSide)
            std::memcpy(static_cast<float*>(c) + to + i * s_.ldc + half,
                        tiles + half / kTileSide * kTileSums + i * kTileSide,
                        size_t(std::min(kTileSide, columns - half)) * sizeof(float));
        continue;
      }
      auto* out = static_cast<uint16_t*>(c) + to;
      if (rows == kTileSide && columns == kGroup) {
        round_rows(tiles, kTileSums, kGroup, 1, out, s_.ldc);
        continue;
      }
      round_rows(tiles, kTileSums, kGroup, 1, rounded, kGroup);
      for (int64_t i = 0; i < rows; ++i)
        std::memcpy(out + i * s_.ldc, rounded + i * kGroup, size_t(columns) * sizeof *out);
    }
}

}  // namespace tokamak::cpu
