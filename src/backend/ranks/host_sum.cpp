#include "backend/ranks/host_sum.h"

#include "backend/cpu/convert.h"
#include "base/parallel.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tokamak {
namespace {

constexpr int64_t kBlock = 1024;  // elements that stay in the nearest cache

// Blocks of [0, count) on all threads; few elements are not worth waking them.
template <class Body>
void for_each_block(int64_t count, const Body& body) {
  parallel_for(count, 32 * kBlock, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin; at < end; at += kBlock) body(at, std::min(kBlock, end - at));
  });
}

// Numbers of a block as they are added: i32 as unsigned, whose sums wrap around, all else as floats.
template <class Number>
struct Block {
  std::array<Number, kBlock> x;

  void load(DType dtype, const void* from, int64_t at, int64_t n) {
    if constexpr (std::is_same_v<Number, float>)
      cpu::load(dtype, from, at, n, x.data());
    else
      std::memcpy(x.data(), static_cast<const Number*>(from) + at, size_t(n) * sizeof(Number));
  }
  void store(DType dtype, void* to, int64_t at, int64_t n) const {
    if constexpr (std::is_same_v<Number, float>)
      cpu::store(dtype, x.data(), n, to, at);
    else
      std::memcpy(static_cast<Number*>(to) + at, x.data(), size_t(n) * sizeof(Number));
  }
  void add(const Block& other, int64_t n) {
    for (int64_t i = 0; i < n; ++i) x[size_t(i)] += other.x[size_t(i)];
  }
  void take_max(const Block& other, int64_t n) {
    using Ordered = std::conditional_t<std::is_same_v<Number, float>, float, int32_t>;
    for (int64_t i = 0; i < n; ++i)
      if (Ordered(x[size_t(i)]) < Ordered(other.x[size_t(i)])) x[size_t(i)] = other.x[size_t(i)];
  }
  void round_to(DType dtype, int64_t n) {
    if (dtype == DType::kF32 || dtype == DType::kI32) return;
    std::array<uint16_t, kBlock> stored;
    store(dtype, stored.data(), 0, n);
    load(dtype, stored.data(), 0, n);
  }
};

template <class Number>
void reduce_as(std::span<const void* const> pieces, void* to, int64_t count, DType dtype, Reduction reduction) {
  for_each_block(count, [&](int64_t at, int64_t n) {
    Block<Number> all, one;
    all.load(dtype, pieces[0], at, n);
    for (const void* piece : pieces.subspan(1)) {
      one.load(dtype, piece, at, n);
      reduction == Reduction::kSum ? all.add(one, n) : all.take_max(one, n);
    }
    all.store(dtype, to, at, n);
  });
}

template <class Number>
void add_tree_as(std::span<const TreePiece> pieces, void* to, int64_t count, DType dtype) {
  for_each_block(count, [&](int64_t at, int64_t n) {
    std::vector<Block<Number>> stack;
    fold_tree(
        pieces, [&](size_t i) { stack.emplace_back().load(dtype, pieces[i].data, at, n); },
        [&] {
          Block<Number>& lower = stack[stack.size() - 2];
          lower.add(stack.back(), n);
          lower.round_to(dtype, n);
          stack.pop_back();
        });
    stack[0].store(dtype, to, at, n);
  });
}

}  // namespace

void reduce_pieces(std::span<const void* const> pieces, void* to, int64_t count, DType dtype, Reduction reduction) {
  dtype == DType::kI32 ? reduce_as<uint32_t>(pieces, to, count, dtype, reduction)
                       : reduce_as<float>(pieces, to, count, dtype, reduction);
}

void add_tree_of_pieces(std::span<const TreePiece> pieces, void* to, int64_t count, DType dtype) {
  dtype == DType::kI32 ? add_tree_as<uint32_t>(pieces, to, count, dtype) : add_tree_as<float>(pieces, to, count, dtype);
}

}  // namespace tokamak
