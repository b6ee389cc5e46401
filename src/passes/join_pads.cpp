#include "passes/join_pads.h"

#include "graph/rewriter.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <algorithm>

namespace tokamak {
namespace {

// One padded value, and the indices of dim where it lies.
struct Piece {
  int64_t begin, end;
  ValueId value;
};

// A value that is zero but for its pieces along dim, in order; no pieces: any other value.
struct Pieces {
  int64_t dim = 0;
  std::vector<Piece> list;
};

class PadJoiner {
 public:
  explicit PadJoiner(const Graph& graph)
      : graph_(graph), users_(find_users(graph)), escaping_(find_escaping(graph)), pieces_(size_t(graph.num_values())) {
    for (const Node& node : graph.nodes()) collect(node);
  }

  /// The pieces of a sum that fill it without a gap.
  const Pieces* whole(const Node& node) const {
    if (node.op != &op::add) return nullptr;
    const Pieces& pieces = pieces_[size_t(node.outputs[0])];
    int64_t at = 0;
    for (const Piece& piece : pieces.list) {
      if (piece.begin != at) return nullptr;
      at = piece.end;
    }
    bool fills = !pieces.list.empty() && at == graph_.shape(node.outputs[0])[size_t(pieces.dim)];
    return fills ? &pieces : nullptr;
  }

 private:
  void collect(const Node& node) {
    Pieces& made = pieces_[size_t(node.outputs[0])];
    if (node.op == &op::pad && !node.attrs.find("parts")) {
      int64_t dim = node.attrs.get_int("dim"), before = node.attrs.get_int("before");
      made = {dim, {{before, before + graph_.shape(node.inputs[0])[size_t(dim)], node.inputs[0]}}};
    } else if (node.op == &op::add) {
      made = sum(node);
    }
  }

  bool only_read_here(ValueId value) const { return users_[size_t(value)].size() == 1 && !escaping_[size_t(value)]; }

  Pieces sum(const Node& add) const {
    const Pieces &a = pieces_[size_t(add.inputs[0])], &b = pieces_[size_t(add.inputs[1])];
    bool both = !a.list.empty() && !b.list.empty() && a.dim == b.dim;
    if (!both || graph_.type(add.inputs[0]) != graph_.type(add.inputs[1])) return {};
    if (!only_read_here(add.inputs[0]) || !only_read_here(add.inputs[1])) return {};
    Pieces sum = a;
    sum.list.insert(sum.list.end(), b.list.begin(), b.list.end());
    std::sort(sum.list.begin(), sum.list.end(), [](const Piece& x, const Piece& y) { return x.begin < y.begin; });
    for (size_t i = 0; i + 1 < sum.list.size(); ++i)
      if (sum.list[i].end > sum.list[i + 1].begin) return {};
    return sum;
  }

  const Graph& graph_;
  Users users_;
  std::vector<bool> escaping_;
  std::vector<Pieces> pieces_;  // by value
};

}  // namespace

bool join_pads(Graph& graph, const PassContext&) {
  PadJoiner joiner(graph);
  auto joins = [&](const Node& node) { return joiner.whole(node) != nullptr; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), joins)) return false;
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    const Pieces* pieces = joiner.whole(node);
    if (!pieces) {
      rewriter.copy(node);
      continue;
    }
    ValueIds values;
    for (const Piece& piece : pieces->list) values.push_back(rewriter.map(piece.value));
    rewriter.replace(node.outputs[0], concat(rewriter.in_place_of(node), values, pieces->dim));
  }
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
