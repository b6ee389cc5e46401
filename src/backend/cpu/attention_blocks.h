// What the forward and the backward pass of attention share: block sizes, packing of one head, masks and dropout.
#pragma once

#include "backend/cpu/attention.h"
#include "backend/cpu/simd.h"
#include "base/divide.h"
#include "base/dropout_random.h"

#include <algorithm>
#include <type_traits>
#include <vector>

namespace tokamak::cpu {

// A block of scores (96 x 64 floats), its keys and its values stay in a 1 MB L2 beside the packed head's next rows.
inline constexpr int64_t kQueries = 96, kKeys = 64;

/// Sizes of one packed head: columns padded to whole vectors, keys to whole blocks. The padding holds zeros.
struct HeadSizes {
  int64_t time, keys, dim, padded_dim, padded_time, padded_keys;
  explicit HeadSizes(const AttentionShape& s)
      : time(s.time), keys(s.zigzag().positions()), dim(s.head_dim), padded_dim(round_up(s.head_dim, kLanes)),
        padded_time(round_up(time, kKeys)), padded_keys(round_up(keys, kKeys)) {}
  // Floats of the queries or of the keys of a head packed by rows, and of its keys packed transposed.
  int64_t query_rows() const { return padded_time * padded_dim; }
  int64_t key_rows() const { return padded_keys * padded_dim; }
  int64_t key_columns() const { return dim * padded_keys; }
};

/// Rows of a head within a tensor.
template <typename T>
struct HeadRows {
  T* base;
  int64_t ld;
  T* operator()(int64_t t) const { return base + t * ld; }
};

/// Rows of a head's keys or values, by position, within (N B, T, 2C), where sample b of the first rank begins at
/// `base`.
template <typename T>
struct RankRows {
  T* base;
  int64_t ld, batch;
  ZigZag zigzag;
  T* operator()(int64_t position) const {
    auto [rank, row] = zigzag.place(position);
    return base + (rank * batch * zigzag.rows + row) * ld;
  }
};

/// Hands out pieces of one thread's part of the workspace, each on a cache line of its own; without a start it only
/// counts how much would be taken.
class Arena {
 public:
  explicit Arena(float* start) : start_(start) {}
  float* take(int64_t floats) {
    float* piece = start_ == nullptr ? nullptr : start_ + taken_;
    taken_ += round_up(floats, 16);
    return piece;
  }
  int64_t taken() const { return taken_; }

 private:
  float* start_;
  int64_t taken_ = 0;
};

/// Copies rows [begin, end) of a head, times factor, to dense rows of padded_dim floats.
template <typename Rows>
void pack_rows(const HeadSizes& z, const Rows& rows, int64_t begin, int64_t end, float factor, float* to) {
  for (int64_t t = begin; t < end; ++t, to += z.padded_dim) {
    const auto* from = rows(t);
    for (int64_t d = 0; d < z.dim; ++d) to[d] = to_float(from[d]) * factor;
    for (int64_t d = z.dim; d < z.padded_dim; ++d) to[d] = 0;
  }
}

/// All `count` rows of a head, and zeros up to `padded` ones.
template <typename Rows>
void pack_head(const HeadSizes& z, const Rows& rows, int64_t count, int64_t padded, float factor, float* to) {
  pack_rows(z, rows, 0, count, factor, to);
  std::fill(to + count * z.padded_dim, to + padded * z.padded_dim, 0.0f);
}

/// The transpose of a head's keys: (dim, padded_keys).
template <typename Rows>
void pack_columns(const HeadSizes& z, const Rows& rows, float* to) {
  using Row = decltype(rows(0));
  for (int64_t t0 = 0; t0 < z.padded_keys; t0 += kLanes) {
    Row from[kLanes];
    for (int64_t t = 0; t < kLanes; ++t) from[t] = t0 + t < z.keys ? rows(t0 + t) : nullptr;
    for (int64_t d = 0; d < z.dim; ++d)
      for (int64_t t = 0; t < kLanes; ++t) to[d * z.padded_keys + t0 + t] = from[t] ? to_float(from[t][d]) : 0.0f;
  }
}

/// Writes dense rows of padded_dim floats back to rows [begin, end) of a head.
template <typename Rows>
void unpack_rows(const HeadSizes& z, const float* from, int64_t begin, int64_t end, const Rows& rows) {
  for (int64_t t = begin; t < end; ++t, from += z.padded_dim) {
    auto* to = rows(t);
    for (int64_t d = 0; d < z.dim; ++d) to[d] = from_float<std::remove_reference_t<decltype(*to)>>(from[d]);
  }
}

/// A half-open run of positions.
struct Range {
  int64_t begin, end;
};

/// Blocks of a head's queries, none of which crosses a chunk: their positions follow each other.
struct QueryBlocks {
  ZigZag zigzag;
  int64_t per_chunk() const { return (zigzag.chunk() + kQueries - 1) / kQueries; }
  int64_t count() const { return zigzag.rows / zigzag.chunk() * per_chunk(); }
  Range operator[](int64_t block) const {
    int64_t first = block / per_chunk() * zigzag.chunk(), begin = first + block % per_chunk() * kQueries;
    return {begin, std::min(begin + kQueries, first + zigzag.chunk())};
  }
};

/// Which keys the queries of one sample see. Queries are rows of a rank, keys positions in the sequence. Pointers are
/// to the sample's T rows; null: they are one document.
struct Visibility {
  ZigZag zigzag;
  bool causal;
  const int32_t *document_begin = nullptr, *document_end = nullptr;

  /// Of one query, and of all queries of [begin, end) together, which begin in one order with their documents.
  Range keys(int64_t query) const { return keys(query, query + 1); }
  Range keys(int64_t begin, int64_t end) const {
    int64_t all = document_end ? document_end[end - 1] : zigzag.positions();
    return {document_begin ? document_begin[begin] : 0, causal ? zigzag.position(end - 1) + 1 : all};
  }
  /// The keys of a query as places in the block of keys [key, key + kKeys); empty where it sees none of them.
  Range in_block(int64_t query, int64_t key) const {
    Range seen = keys(query);
    return {std::clamp<int64_t>(seen.begin - key, 0, kKeys), std::clamp<int64_t>(seen.end - key, 0, kKeys)};
  }
  /// How many of a block's first queries come before a key, all of whose positions follow each other.
  int64_t before(Range queries, int64_t key) const {
    return causal ? std::max<int64_t>(0, key - zigzag.position(queries.begin)) : 0;
  }
};

/// Where the document of every position begins (given), and where it ends, which causal attention does not ask.
class DocumentRanges {
 public:
  DocumentRanges(const AttentionShape& s, const int32_t* documents)
      : zigzag_(s.zigzag()), causal_(s.causal), begins_(documents) {
    if (!documents || causal_) return;
    ends_.resize(size_t(s.batch * s.time));
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t t = s.time - 1; t >= 0; --t) {
        size_t i = size_t(b * s.time + t);
        ends_[i] = t + 1 < s.time && documents[i + 1] <= t ? ends_[i + 1] : int32_t(t + 1);
      }
  }

  Visibility sample(int64_t b) const {
    size_t first = size_t(b * zigzag_.rows);
    return {zigzag_, causal_, begins_ ? begins_ + first : nullptr, ends_.empty() ? nullptr : &ends_[first]};
  }

 private:
  ZigZag zigzag_;
  bool causal_;
  const int32_t* begins_;      // (B, T)
  std::vector<int32_t> ends_;  // (B, T), or empty
};

/// Factors of the probabilities of the query at position i, of so many, of a head and keys key .. key + kKeys - 1.
inline void dropout_factors(const AttentionDropout& dropout, int64_t positions, int64_t head, int64_t i, int64_t key,
                            float* factors) {
  MatrixRandom random(dropout.key, dropout.random_stream, positions);
  uint32_t threshold = dropout_threshold(dropout.p);
  auto kept = float(dropout_factor(dropout.p));
  size_t row = i & 8 ? 2 : 0;
  int64_t matrix = dropout.place(head);
  for (int64_t j = 0; j < kKeys; j += 16)
    for (int64_t k = j; k < j + 8; k += 2) {
      auto numbers = random.draw(matrix, i & ~8, key + k);
      for (size_t far = 0; far < 2; ++far)
        for (size_t odd = 0; odd < 2; ++odd)
          factors[size_t(k) + 8 * far + odd] = numbers[4 * odd + row + far] < threshold ? 0 : kept;
    }
}

/// The block that item `item` of a head's `count` blocks stands for: 0, count - 1, 1, count - 2, ... so that any
/// contiguous run of items costs about the same although a causal block's cost grows with its place.
inline int64_t balanced_block(int64_t item, int64_t count) { return item % 2 == 0 ? item / 2 : count - 1 - item / 2; }

/// One head of attention's gradient.
template <typename T, template <typename> typename Keys>
struct GradientHead {
  int64_t index = -1;
  HeadRows<const T> queries, out, dout;
  Keys<const T> keys, values;
  HeadRows<T> dqueries;
  Keys<T> dkeys, dvalues;
  const float* lse = nullptr;
  Visibility visible{};
};

/// What attention's gradient reads and writes, as backend/cpu/attention.h has it.
template <typename T>
struct GradientTensors {
  const int32_t* documents;
  const T *qkv, *out;
  const float* lse;
  const T* dout;
  T* dqkv;
  const T* kv;
  T* dkv;
};

/// run.template operator()<Keys>(find): where keys lie, and what gives head i of the batch.
template <typename T, typename Run>
void run_gradient(const AttentionShape& s, const GradientTensors<T>& x, const Run& run) {
  DocumentRanges ranges(s, x.documents);
  int64_t C = s.width(), dq_width = s.ranks == 1 ? 3 * C : C;
  // What does not depend on where keys are.
  auto queries = [&](int64_t i, auto& head) {
    int64_t row = i / s.heads * s.time, column = i % s.heads * s.head_dim;
    head.index = i;
    head.queries = {x.qkv + row * 3 * C + column, 3 * C};
    head.out = {x.out + row * C + column, C};
    head.dout = {x.dout + row * C + column, C};
    head.dqueries = {x.dqkv + row * dq_width + column, dq_width};
    head.lse = x.lse + i * s.time;
    head.visible = ranges.sample(i / s.heads);
  };
  if (s.ranks == 1)
    return run.template operator()<HeadRows>([&](int64_t i) {
      GradientHead<T, HeadRows> head;
      queries(i, head);
      head.keys = {head.queries.base + C, 3 * C};
      head.values = {head.queries.base + 2 * C, 3 * C};
      head.dkeys = {head.dqueries.base + C, 3 * C};
      head.dvalues = {head.dqueries.base + 2 * C, 3 * C};
      return head;
    });
  run.template operator()<RankRows>([&](int64_t i) {
    GradientHead<T, RankRows> head;
    queries(i, head);
    int64_t at = i / s.heads * s.time * 2 * C + i % s.heads * s.head_dim;
    head.keys = {x.kv + at, 2 * C, s.batch, s.zigzag()};
    head.values = {x.kv + at + C, 2 * C, s.batch, s.zigzag()};
    head.dkeys = {x.dkv + at, 2 * C, s.batch, s.zigzag()};
    head.dvalues = {x.dkv + at + C, 2 * C, s.batch, s.zigzag()};
    return head;
  });
}

}  // namespace tokamak::cpu
