// What the forward and the backward pass of attention share: block sizes, packing of one head, masks and dropout.
#pragma once

#include "backend/cpu/attention.h"
#include "backend/cpu/simd.h"
#include "base/dropout_random.h"

#include <algorithm>
#include <vector>

namespace tokamak::cpu {

// A block of scores (96 x 64 floats), its keys and its values stay in a 1 MB L2 beside the packed head's next rows.
inline constexpr int64_t kQueries = 96, kKeys = 64;

inline int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

/// Sizes of one packed head: columns padded to whole vectors, keys to whole blocks. The padding holds zeros.
struct HeadSizes {
  int64_t time, dim, padded_dim, padded_time;
  explicit HeadSizes(const AttentionShape& s)
      : time(s.time), dim(s.head_dim), padded_dim(round_up(s.head_dim, kLanes)), padded_time(round_up(s.time, kKeys)) {}
  int64_t rows() const { return padded_time * padded_dim; }  // floats of a head packed by rows
  int64_t columns() const { return dim * padded_time; }      // floats of a head packed transposed
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

/// Copies rows [begin, end) of a head (row stride ld, times factor) to dense rows of padded_dim floats.
template <typename T>
void pack_rows(const HeadSizes& z, const T* from, int64_t ld, int64_t begin, int64_t end, float factor, float* to) {
  for (int64_t t = begin; t < end; ++t, to += z.padded_dim) {
    for (int64_t d = 0; d < z.dim; ++d) to[d] = to_float(from[t * ld + d]) * factor;
    for (int64_t d = z.dim; d < z.padded_dim; ++d) to[d] = 0;
  }
}

/// All rows of a head, and zeros up to padded_time.
template <typename T>
void pack_head(const HeadSizes& z, const T* from, int64_t ld, float factor, float* to) {
  pack_rows(z, from, ld, 0, z.time, factor, to);
  std::fill(to + z.time * z.padded_dim, to + z.rows(), 0.0f);
}

/// The transpose of a head: (dim, padded_time).
template <typename T>
void pack_columns(const HeadSizes& z, const T* from, int64_t ld, float* to) {
  for (int64_t t0 = 0; t0 < z.padded_time; t0 += kLanes)
    for (int64_t d = 0; d < z.dim; ++d)
      for (int64_t t = t0; t < t0 + kLanes; ++t)
        to[d * z.padded_time + t] = t < z.time ? to_float(from[t * ld + d]) : 0.0f;
}

/// Writes dense rows of padded_dim floats back to rows [begin, end) of a head.
template <typename T>
void unpack_rows(const HeadSizes& z, const float* from, int64_t begin, int64_t end, T* to, int64_t ld) {
  for (int64_t t = begin; t < end; ++t, from += z.padded_dim)
    for (int64_t d = 0; d < z.dim; ++d) to[t * ld + d] = from_float<T>(from[d]);
}

/// A half-open run of positions.
struct Range {
  int64_t begin, end;
};

/// Which keys the queries of one sample see. Pointers are to its T positions; null: they are one document.
struct Visibility {
  int64_t time;
  bool causal;
  const int32_t *document_begin = nullptr, *document_end = nullptr;

  Range document(int64_t t) const {
    return document_begin ? Range{document_begin[t], document_end[t]} : Range{0, time};
  }
  /// Of one query, and of all queries [begin, end) together.
  Range keys(int64_t query) const { return keys(query, query + 1); }
  Range keys(int64_t begin, int64_t end) const { return {document(begin).begin, causal ? end : document(end - 1).end}; }
  /// All queries that see some of the keys [begin, end).
  Range queries(int64_t begin, int64_t end) const {
    return {causal ? begin : document(begin).begin, document(end - 1).end};
  }
  /// The keys of a query as places in the block of keys [key, key + kKeys); empty where it sees none of them.
  Range in_block(int64_t query, int64_t key) const {
    Range seen = keys(query);
    return {std::clamp<int64_t>(seen.begin - key, 0, kKeys), std::clamp<int64_t>(seen.end - key, 0, kKeys)};
  }
};

/// Where the document of every position begins (given) and ends.
class DocumentRanges {
 public:
  DocumentRanges(const AttentionShape& s, const int32_t* documents)
      : time_(s.time), causal_(s.causal), begins_(documents) {
    if (!documents) return;
    ends_.resize(size_t(s.batch * s.time));
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t t = s.time - 1; t >= 0; --t) {
        size_t i = size_t(b * s.time + t);
        ends_[i] = t + 1 < s.time && documents[i + 1] <= t ? ends_[i + 1] : int32_t(t + 1);
      }
  }

  Visibility sample(int64_t b) const {
    if (!begins_) return {time_, causal_};
    return {time_, causal_, begins_ + b * time_, &ends_[size_t(b * time_)]};
  }

 private:
  int64_t time_;
  bool causal_;
  const int32_t* begins_;      // (B, T)
  std::vector<int32_t> ends_;  // (B, T), empty without documents
};

/// Factors of the probabilities of query i of a head and keys key .. key + kKeys - 1.
inline void dropout_factors(const AttentionDropout& dropout, int64_t time, int64_t head, int64_t i, int64_t key,
                            float* factors) {
  MatrixRandom random(dropout.key, dropout.stream, time);
  uint32_t threshold = dropout_threshold(dropout.p);
  auto kept = float(dropout_factor(dropout.p));
  size_t row = i & 8 ? 2 : 0;
  int64_t matrix = dropout.place(head);
  for (int64_t j = 0; j < kKeys; j += 16)
    for (int64_t k = j; k < j + 8; ++k) {
      auto numbers = random.draw(matrix, i & ~8, key + k);
      factors[k] = numbers[row] < threshold ? 0 : kept;
      factors[k + 8] = numbers[row + 1] < threshold ? 0 : kept;
    }
}

/// The block that item `item` of a head's `count` blocks stands for: 0, count - 1, 1, count - 2, ... so that any
/// contiguous run of items costs about the same although a causal block's cost grows with its place.
inline int64_t balanced_block(int64_t item, int64_t count) { return item % 2 == 0 ? item / 2 : count - 1 - item / 2; }

}  // namespace tokamak::cpu
