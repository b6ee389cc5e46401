// How heads of attention and their blocks are dealt to threads, whether vectors or tiles compute them. `make(thread)`
// gives what a thread computes with. Tests: tests/backend/cpu/attention_test.cpp,
// tests/backend/cpu/tiled_attention_test.cpp.
#pragma once

#include "backend/cpu/attention_blocks.h"
#include "base/parallel.h"

namespace tokamak::cpu {

/// Of a head in sample b, from `column` on: behind its queries in qkv, or in what all ranks have.
template <typename T, typename Forward>
void load_keys(Forward& forward, const AttentionShape& s, const Visibility& visible, HeadRows<const T> q, const T* kv,
               int64_t b, int64_t column) {
  int64_t C = s.width();
  if (s.ranks == 1)
    return forward.load_head(HeadRows<const T>{q.base + C, q.ld}, HeadRows<const T>{q.base + 2 * C, q.ld}, visible);
  RankRows<const T> keys{kv + b * s.time * 2 * C + column, 2 * C, s.batch, s.zigzag()}, values = keys;
  values.base += C;
  forward.load_head(keys, values, visible);
}

/// Every block of queries of all heads.
template <typename T, typename Make>
void run_forward(const AttentionShape& s, const int32_t* documents, const T* qkv, T* out, float* lse, const T* kv,
                 const Make& make) {
  DocumentRanges ranges(s, documents);
  QueryBlocks queries{s.zigzag()};
  int64_t C = s.width(), blocks = queries.count();
  parallel_for(s.batch * s.heads * blocks, 1, [&](int64_t first, int64_t last, int thread) {
    auto forward = make(thread);
    int64_t loaded = -1;
    for (int64_t item = first; item < last; ++item) {
      int64_t head = item / blocks, b = head / s.heads, column = head % s.heads * s.head_dim;
      HeadRows<const T> q{qkv + b * s.time * 3 * C + column, 3 * C};
      if (head != loaded) load_keys(forward, s, ranges.sample(b), q, kv, b, column);
      loaded = head;
      HeadRows<T> rows{out + b * s.time * C + column, C};
      forward.run_block(q, head, queries[balanced_block(item % blocks, blocks)], rows, lse + head * s.time);
    }
  });
}

/// All gradients of all heads; head(i) says where head i is.
template <typename Make, typename HeadOf>
void run_backward(const AttentionShape& s, const HeadOf& head, const Make& make) {
  int64_t heads = s.batch * s.heads;
  // run(backward, block) for `blocks` blocks of every head.
  auto for_blocks = [&](int64_t blocks, auto run) {
    parallel_for(heads * blocks, 1, [&](int64_t first, int64_t last, int thread) {
      auto backward = make(thread);
      for (int64_t item = first; item < last; ++item) {
        backward.load_head(head(item / blocks));
        run(backward, balanced_block(item % blocks, blocks));
      }
    });
  };
  if (heads >= num_threads()) {
    for_blocks(1, [](auto& backward, int64_t) { backward.run_head(); });
    return;
  }
  // Too few heads for the threads: blocks in parallel, at the price of computing the scores twice.
  for_blocks((s.zigzag().positions() + kKeys - 1) / kKeys,
             [](auto& backward, int64_t block) { backward.run_keys(block * kKeys, false); });
  for_blocks(QueryBlocks{s.zigzag()}.count(), [](auto& backward, int64_t block) { backward.run_queries(block); });
}

}  // namespace tokamak::cpu
