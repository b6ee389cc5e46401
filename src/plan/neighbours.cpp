#include "plan/neighbours.h"

#include "base/divide.h"
#include "ops/collective.h"
#include "plan/arena.h"

#include <algorithm>
#include <limits>

namespace tokamak {
namespace {

class Finder {
 public:
  Finder(const Graph& graph, const StorageMap& storage)
      : graph_(graph), storage_(storage), taken_(storage.blocks.size(), false) {}

  void add(const ValueIds& values) {
    std::vector<int> row;
    for (ValueId value : values) {
      int block = storage_.block_of[size_t(value)];
      if (block < 0 || taken_[size_t(block)]) continue;
      if (storage_.blocks[size_t(block)].bytes != num_bytes(graph_.type(value))) continue;
      taken_[size_t(block)] = true;
      row.push_back(block);
    }
    if (row.size() > 1) rows_.push_back(std::move(row));
  }

  std::vector<std::vector<int>> take() { return std::move(rows_); }

 private:
  const Graph& graph_;
  const StorageMap& storage_;
  std::vector<bool> taken_;  // by block
  std::vector<std::vector<int>> rows_;
};

// A row as one block; sets when its blocks are taken.
Block join(std::vector<Block>& blocks, const std::vector<int>& row) {
  Block whole{.bytes = 0, .first = std::numeric_limits<int>::max()};
  for (int b : row) {
    const Block& block = blocks[size_t(b)];
    whole.bytes += round_up(block.bytes, kArenaAlignment);
    whole.first = std::min(whole.first, block.first);
    whole.last = std::max(whole.last, block.last);
  }
  for (int b : row) blocks[size_t(b)].first = whole.first, blocks[size_t(b)].last = whole.last;
  return whole;
}

}  // namespace

std::vector<std::vector<int>> find_neighbours(const Graph& graph, const StorageMap& storage) {
  Finder finder(graph, storage);
  for (const Node& node : graph.nodes())
    if (node.op == &op::all_reduce && node.inputs.size() > 1) {
      finder.add(node.inputs);
      finder.add(node.outputs);
    }
  return finder.take();
}

int64_t place_blocks_side_by_side(std::vector<Block>& blocks, const std::vector<std::vector<int>>& rows) {
  std::vector<bool> in_row(blocks.size(), false);
  std::vector<Block> pieces;
  for (const std::vector<int>& row : rows) {
    pieces.push_back(join(blocks, row));
    for (int b : row) in_row[size_t(b)] = true;
  }
  for (size_t b = 0; b < blocks.size(); ++b)
    if (!in_row[b]) pieces.push_back(blocks[b]);
  int64_t bytes = place_blocks(pieces);
  size_t piece = 0;
  for (const std::vector<int>& row : rows) {
    int64_t offset = pieces[piece++].offset;
    for (int b : row) {
      blocks[size_t(b)].offset = offset;
      offset += round_up(blocks[size_t(b)].bytes, kArenaAlignment);
    }
  }
  for (size_t b = 0; b < blocks.size(); ++b)
    if (!in_row[b]) blocks[b].offset = pieces[piece++].offset;
  return bytes;
}

}  // namespace tokamak
