#include "compile/balance_blocks.h"

#include "base/error.h"
#include "config/chunk_layers.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tokamak {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity(), kRounding = 1e-9;

// Blocks of so many seconds in chunks of one or more, and what the longest takes.
struct Division {
  std::vector<int64_t> first_block;  // of each chunk, and behind them the number of blocks
  double longest = kNever;           // nothing can be divided so
};

// The least that the longest chunk can take, by number of chunks and of blocks that they have together. Of divisions
// that take as long, but for what sums of seconds are rounded by, later chunks have more blocks: their stages hold
// fewer micro-batches.
Division balance(const std::vector<double>& seconds_of_blocks, int64_t chunks) {
  auto blocks = int64_t(seconds_of_blocks.size());
  if (chunks < 1 || chunks > blocks) return {};
  std::vector<double> before(size_t(blocks) + 1, 0);
  std::partial_sum(seconds_of_blocks.begin(), seconds_of_blocks.end(), before.begin() + 1);
  std::vector<std::vector<double>> least(size_t(chunks) + 1, std::vector<double>(size_t(blocks) + 1, kNever));
  std::vector<std::vector<int64_t>> first(size_t(chunks) + 1, std::vector<int64_t>(size_t(blocks) + 1, 0));
  least[0][0] = 0;
  for (size_t c = 1; c <= size_t(chunks); ++c)
    for (size_t end = c; end <= size_t(blocks); ++end)
      for (size_t begin = c - 1; begin < end; ++begin) {
        double longest = std::max(least[c - 1][begin], before[end] - before[begin]);
        if (longest >= (1 - kRounding) * least[c][end]) continue;
        least[c][end] = longest;
        first[c][end] = int64_t(begin);
      }
  std::vector<int64_t> borders{blocks};
  for (int64_t c = chunks; c > 0; --c) borders.push_back(first[size_t(c)][size_t(borders.back())]);
  std::reverse(borders.begin(), borders.end());
  return {std::move(borders), least[size_t(chunks)][size_t(blocks)]};
}

// The same where the ends that are said are chunks without blocks.
Division balance_between(std::vector<double> blocks, const std::array<double, 2>& ends, std::array<bool, 2> is_bare,
                         int64_t chunks) {
  if (is_bare[0]) blocks.front() -= ends[0];
  if (is_bare[1]) blocks.back() -= ends[1];
  Division between = balance(blocks, chunks - is_bare[0] - is_bare[1]);
  if (between.first_block.empty()) return between;
  if (is_bare[0]) between.first_block.insert(between.first_block.begin(), 0);
  if (is_bare[1]) between.first_block.push_back(int64_t(blocks.size()));
  for (size_t end : {0, 1})
    if (is_bare[end]) between.longest = std::max(between.longest, ends[end]);
  return between;
}

}  // namespace

// A bare end can only be faster where one block with its end takes longest.
std::vector<int64_t> balance_blocks(const BlockSeconds& seconds, int64_t chunks) {
  std::vector<double> blocks = seconds.blocks();
  TOKAMAK_CHECK(chunks >= 1 && chunks <= most_chunks(int64_t(blocks.size())), "{} blocks in {} chunks", blocks.size(),
                chunks);
  Division best = balance(blocks, chunks);
  bool is_known = !best.first_block.empty();
  if (is_known && (chunks == 1 || std::max(blocks.front(), blocks.back()) < (1 - kRounding) * best.longest))
    return best.first_block;
  std::array<double, 2> ends = seconds.ends();
  for (std::array<bool, 2> is_bare : {std::array{false, true}, {true, false}, {true, true}}) {
    Division other = balance_between(blocks, ends, is_bare, chunks);
    if (other.longest < (1 - kRounding) * best.longest) best = std::move(other);
  }
  return best.first_block;
}

std::vector<int64_t> divide_blocks(const MeshConfig& mesh, int64_t layers, const BlockSeconds& seconds) {
  std::vector<int64_t> counts = chunk_layers(mesh, layers);
  if (counts.empty()) return balance_blocks(seconds, mesh.pipe * mesh.interleave);
  std::vector<int64_t> first{0};
  for (int64_t count : counts) first.push_back(first.back() + count);
  return first;
}

}  // namespace tokamak
