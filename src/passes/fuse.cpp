#include "passes/fuse.h"

#include "ops/group.h"
#include "passes/combine_groups.h"
#include "passes/group_units.h"

#include <algorithm>
#include <limits>

namespace tokamak {
namespace {

constexpr int kCheapNodes = 4;                 // of a producer that every reader computes again
constexpr double kWorthReadingOnce = 1 << 16;  // bytes
constexpr double kMostHeld = 1.0 / 64;         // of these: what may live longer for it

class Fuser {
 public:
  explicit Fuser(GroupUnits& units) : units_(units) {}

  bool run() {
    bool any = false;
    for (int consumer = 0; consumer < units_.size(); ++consumer)
      while (units_.is_live_group(consumer) && absorb_one(consumer)) any = true;
    for (int later = 0; later < units_.size(); ++later)
      while (units_.is_live_group(later) && absorb_sibling(later)) any = true;
    return any;
  }

 private:
  const GroupBody& group(int u) const { return *units_[u].group; }

  bool absorb_one(int consumer) {
    for (ValueId input : units_.inputs(consumer)) {
      int producer = units_.producer(input);
      if (producer < 0 || !units_[producer].group) continue;
      if (copy_generator(producer, consumer) || copy_cheap(producer, consumer) || merge(producer, consumer))
        return true;
    }
    return false;
  }

  bool copy_generator(int producer, int consumer) {
    if (!is_generator(group(producer))) return false;
    std::optional<GroupBody> inlined = inline_generator(group(producer), group(consumer));
    if (!inlined || !within_limits(*inlined)) return false;
    units_.become(consumer, std::move(*inlined), producer);
    return true;
  }

  // Several groups read the one result of a small flat group whose inputs are no larger: each computes it again.
  bool copy_cheap(int producer, int consumer) {
    const GroupBody& from = group(producer);
    if (from.kind != &op::flat || from.num_nodes() > kCheapNodes || from.results.size() != 1) return false;
    ValueId value = from.results[0].outer;
    const auto& users = units_.users(value);
    bool by_groups = std::all_of(users.begin(), users.end(), [&](int u) { return units_[u].group.has_value(); });
    if (users.size() < 2 || !by_groups || units_.escapes(value)) return false;
    double read = 0;
    for (ValueId input : from.inputs()) read += units_.bytes(input);
    if (read > units_.bytes(value) + 4096) return false;  // a vector or a few scalars more do not count
    std::optional<GroupBody> joined = combine_groups(from, group(consumer));
    if (!joined) return false;
    std::erase_if(joined->results, [&](const GroupResult& result) { return result.outer == value; });
    if (!within_limits(*joined)) return false;
    units_.become(consumer, std::move(*joined), producer);
    return true;
  }

  // Joined with a forward group, a recomputed one would move back to the forward pass and become its duplicate.
  bool is_recomputed_from(int producer, int consumer) const {
    const Node &p = *units_[producer].node, &c = *units_[consumer].node;
    return c.recompute && c.phase == Phase::kBackward && p.phase != Phase::kBackward;
  }

  // Flat groups, or row groups, over one space that read a value each by itself read it once as one. The earlier one
  // can wait where nobody reads it before the later one, which then does not depend on it, and where next to none of
  // its inputs live longer for it.
  bool absorb_sibling(int later) {
    if (group(later).kind != &op::flat && group(later).kind != &op::row) return false;
    for (ValueId input : units_.inputs(later)) {
      if (units_.bytes(input) < kWorthReadingOnce) continue;
      for (int earlier : units_.users(input))
        if (earlier != later && units_.is_live_group(earlier) && merge_siblings(earlier, later, units_.bytes(input)))
          return true;
    }
    return false;
  }

  bool merge_siblings(int earlier, int later, double shared) {
    const GroupBody &a = group(earlier), &b = group(later);
    const Node &first = *units_[earlier].node, &second = *units_[later].node;
    bool alike = a.kind == b.kind && a.rows == b.rows && a.cols == b.cols && first.phase == second.phase &&
                 first.recompute == second.recompute;
    if (!alike || units_.position(earlier) > units_.position(later)) return false;
    if (legal_position(earlier, later) != units_.position(later)) return false;
    double held = 0;
    for (ValueId input : units_.inputs(earlier))
      if (units_.producer(input) >= 0 && units_.last_use(input) < units_.position(later)) held += units_.bytes(input);
    if (held > kMostHeld * shared) return false;
    std::optional<GroupBody> joined = combine_groups(a, b);
    if (!joined || !within_limits(*joined)) return false;
    units_.merge(earlier, later, std::move(*joined), units_.position(later));
    return true;
  }

  bool merge(int producer, int consumer) {
    if (is_recomputed_from(producer, consumer)) return false;
    std::optional<double> at = legal_position(producer, consumer);
    if (!at || !memory_allows(producer, consumer, *at)) return false;
    std::optional<GroupBody> joined = combine_groups(group(producer), group(consumer));
    if (!joined) return false;
    std::erase_if(joined->results, [&](const GroupResult& result) {
      if (units_.escapes(result.outer)) return false;
      const auto& users = units_.users(result.outer);
      return std::all_of(users.begin(), users.end(), [&](int u) { return u == consumer; });
    });
    if (!within_limits(*joined)) return false;
    units_.merge(producer, consumer, std::move(*joined), *at);
    return true;
  }

  // Where both can run as one: at the consumer when all other readers of the producer come later, else between the last
  // of what the consumer needs and the first of those readers. Either way no other unit can lie between them.
  std::optional<double> legal_position(int producer, int consumer) const {
    double first_reader = std::numeric_limits<double>::infinity(), last_input = units_.position(producer);
    for (ValueId output : units_.outputs(producer))
      for (int user : units_.users(output))
        if (user != consumer) first_reader = std::min(first_reader, units_.position(user));
    if (first_reader > units_.position(consumer)) return units_.position(consumer);
    for (ValueId input : units_.inputs(consumer))
      if (int p = units_.producer(input); p >= 0 && p != producer)
        last_input = std::max(last_input, units_.position(p));
    double middle = (last_input + first_reader) / 2;
    if (last_input < middle && middle < first_reader) return middle;
    return {};
  }

  // Moving a node far must not keep more bytes alive than fusing saves.
  bool memory_allows(int producer, int consumer, double at) const {
    double held = 0, saved = 0;
    if (at - units_.position(producer) > kNear)
      for (ValueId input : units_.inputs(producer))
        if (units_.producer(input) >= 0 && units_.last_use(input) < at) held += units_.bytes(input);
    if (units_.position(consumer) - at > kNear)
      for (ValueId output : units_.outputs(consumer)) held += units_.bytes(output);
    for (ValueId output : units_.outputs(producer)) {
      const auto& users = units_.users(output);
      if (!units_.escapes(output) && users.size() == 1 && users[0] == consumer) saved += units_.bytes(output);
    }
    return held == 0 || held <= saved;
  }

  GroupUnits& units_;
};

}  // namespace

bool fuse(Graph& graph, const PassContext& context) {
  bool changed = fuse_matmul_epilogues(graph, context);
  GroupUnits units(graph);
  bool merged = Fuser(units).run();
  if (context.target.row_column_groups) merged |= fuse_column_sums(units);
  if (!merged) return changed;
  graph = units.rewrite();
  return true;
}

}  // namespace tokamak
