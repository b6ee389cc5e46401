#include "ops/group.h"
#include "passes/combine_groups.h"
#include "passes/fuse.h"
#include "passes/group_units.h"

#include <algorithm>
#include <limits>

namespace tokamak {
namespace {

constexpr int64_t kMaxColumns = 8192;  // partial sums of a whole row that a kernel can keep

class ColumnFuser {
 public:
  explicit ColumnFuser(GroupUnits& units) : units_(units) {}

  bool run() {
    bool any = false;
    for (int column = 0; column < units_.size(); ++column)
      if (is_kind(column, op::column) && group(column).cols <= kMaxColumns)
        any |= join_row(column) || become_row(column);
    return any;
  }

 private:
  const GroupBody& group(int u) const { return *units_[u].group; }
  bool is_kind(int u, const OpDef& kind) const { return units_.is_live_group(u) && group(u).kind == &kind; }

  // Joins the row group with which it shares the most bytes.
  bool join_row(int column) {
    int best = -1;
    double most = 0;
    for (int row : candidates(column))
      if (double shared = shared_bytes(row, column); shared > most && position(row, column)) {
        best = row;
        most = shared;
      }
    if (best < 0) return false;
    std::optional<GroupBody> joined = combine_row_column(group(best), group(column));
    if (!joined) return false;
    std::erase_if(joined->results, [&](const GroupResult& result) {
      const auto& users = units_.users(result.outer);
      return !units_.escapes(result.outer) &&
             std::all_of(users.begin(), users.end(), [&](int u) { return u == column; });
    });
    if (!within_limits(*joined)) return false;
    units_.merge(column, best, std::move(*joined), *position(best, column));
    return true;
  }

  // What another stage of a pipeline made was made by a row group, which would add it up: in its order.
  bool become_row(int column) {
    ValueIds inputs = units_.inputs(column);
    bool is_of_residual = std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) { return units_.is_residual(v); });
    if (!is_of_residual || group(column).rows == 1 || group(column).cols == 1 || !only_sums(group(column)))
      return false;
    units_.become(column, op::row);
    return true;
  }

  // Row groups that make or read one of the inputs.
  std::vector<int> candidates(int column) const {
    std::vector<int> found;
    auto consider = [&](int u) {
      if (u >= 0 && is_kind(u, op::row) && std::find(found.begin(), found.end(), u) == found.end()) found.push_back(u);
    };
    for (ValueId input : units_.inputs(column)) {
      consider(units_.producer(input));
      for (int user : units_.users(input)) consider(user);
    }
    return found;
  }

  // Of whole matrices that the column group reads and the row group makes or reads: they are read once less.
  double shared_bytes(int row, int column) const {
    if (group(row).rows != group(column).rows || group(row).cols != group(column).cols) return 0;
    ValueIds at_hand = units_.inputs(row), made = units_.outputs(row);
    at_hand.insert(at_hand.end(), made.begin(), made.end());
    double bytes = 0;
    for (const GroupValue& value : group(column).values)
      if (!value.op && group(column).is_full(value) &&
          std::find(at_hand.begin(), at_hand.end(), value.outer) != at_hand.end())
        bytes += units_.bytes(value.outer);
    return bytes;
  }

  // Where both can run as one: after all that they read and before all others that read what they make, as near to the
  // row group as can be. Nothing when there is no such place or it is not near both: memory is not weighed here.
  std::optional<double> position(int row, int column) const {
    double after = -1, before = std::numeric_limits<double>::infinity();
    for (int u : {row, column}) {
      for (ValueId input : units_.inputs(u))
        if (int p = units_.producer(input); p == column)
          return {};  // the row group reads the sums
        else if (p >= 0 && p != row)
          after = std::max(after, units_.position(p));
      for (ValueId output : units_.outputs(u))
        for (int user : units_.users(output))
          if (user != row && user != column) before = std::min(before, units_.position(user));
    }
    double at = units_.position(row), other = units_.position(column);
    if (at <= after || at >= before) at = after < other && other < before ? other : (after + before) / 2;
    bool near = std::abs(at - units_.position(row)) <= kNear && std::abs(at - other) <= kNear;
    return near && after < at && at < before ? std::optional(at) : std::nullopt;
  }

  GroupUnits& units_;
};

}  // namespace

bool fuse_column_sums(GroupUnits& units) { return ColumnFuser(units).run(); }

}  // namespace tokamak
