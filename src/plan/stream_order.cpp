#include "plan/stream_order.h"

#include "base/error.h"

#include <algorithm>
#include <array>

namespace tokamak {
namespace {

// Bytes that a launch reads or writes.
struct Access {
  ValueId argument;  // whose storage; kNoValue: the arena's
  int64_t begin, end;
  bool writes;
};

bool conflict(const Access& a, const Access& b) {
  return a.argument == b.argument && a.begin < b.end && b.begin < a.end && (a.writes || b.writes);
}

class Accesses {
 public:
  explicit Accesses(const Plan& plan) : plan_(plan), accesses_(plan.launches.size()) {
    for (size_t i = 0; i < plan.launches.size(); ++i) {
      const Node& node = plan.graph.nodes()[size_t(plan.launches[i].node)];
      for (ValueId input : node.inputs) add(accesses_[i], input, false);
      for (ValueId output : node.outputs) add(accesses_[i], output, true);
    }
  }

  /// The last launch before `i`, on the other stream and after `known`, that must not run at the same time; -1: none.
  int last_conflict(int i, int known) const {
    for (int other = i - 1; other > known; --other)
      if (plan_.launches[size_t(other)].stream != plan_.launches[size_t(i)].stream && conflicts(other, i)) return other;
    return -1;
  }

 private:
  void add(std::vector<Access>& list, ValueId value, bool writes) const {
    const Location& at = plan_.locations[size_t(value)];
    int64_t begin = at.argument == kNoValue ? at.offset : 0;
    list.push_back({at.argument, begin, begin + num_bytes(plan_.graph.type(value)), writes});
  }

  bool conflicts(int a, int b) const {
    const std::vector<Access>& others = accesses_[size_t(b)];
    return std::any_of(accesses_[size_t(a)].begin(), accesses_[size_t(a)].end(), [&](const Access& access) {
      return std::any_of(others.begin(), others.end(), [&](const Access& other) { return conflict(access, other); });
    });
  }

  const Plan& plan_;
  std::vector<std::vector<Access>> accesses_;
};

bool uses_two(const Plan& plan) {
  return std::any_of(plan.launches.begin(), plan.launches.end(), [](const Launch& l) { return l.stream != 0; });
}

}  // namespace

void order_streams(Plan& plan, const StreamSchedule& schedule) {
  for (Launch& launch : plan.launches) launch.stream = schedule.stream[size_t(launch.node)];
  if (!uses_two(plan)) return;
  Accesses accesses(plan);
  std::array<int, 2> known{-1, -1};  // by stream: the last launch of the other one that it has waited for
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    Launch& launch = plan.launches[i];
    launch.after = accesses.last_conflict(int(i), known[size_t(launch.stream)]);
    if (launch.after >= 0) known[size_t(launch.stream)] = launch.after;
  }
}

void verify_streams(const Plan& plan) {
  if (!uses_two(plan)) return;
  Accesses accesses(plan);
  std::array<int, 2> known{-1, -1};
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    TOKAMAK_CHECK(launch.stream == 0 || launch.stream == 1, "node {} is on stream {}", launch.node, launch.stream);
    if (launch.after >= 0) {
      TOKAMAK_CHECK(launch.after < int(i) && plan.launches[size_t(launch.after)].stream != launch.stream,
                    "node {} waits for launch {}, which is no earlier one of the other stream", launch.node,
                    launch.after);
      int& last = known[size_t(launch.stream)];
      last = std::max(last, launch.after);
    }
    int conflict = accesses.last_conflict(int(i), known[size_t(launch.stream)]);
    TOKAMAK_CHECK(conflict < 0, "nodes {} and {} touch the same bytes on two streams and neither waits", launch.node,
                  plan.launches[size_t(conflict)].node);
  }
}

}  // namespace tokamak
