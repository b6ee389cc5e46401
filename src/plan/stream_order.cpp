#include "plan/stream_order.h"

#include "base/error.h"

#include <algorithm>
#include <map>
#include <ranges>

namespace tokamak {
namespace {

// Bytes that a launch reads or writes, or what it has effects on.
struct Access {
  ValueId storage;  // the argument's; kNoValue: the arena; below: effects, numbered
  int64_t begin, end;
  bool writes;
};

bool conflict(const Access& a, const Access& b) {
  return a.storage == b.storage && a.begin < b.end && b.begin < a.end && (a.writes || b.writes);
}

bool conflict(const std::vector<Access>& some, const std::vector<Access>& others) {
  return std::any_of(some.begin(), some.end(), [&](const Access& a) {
    return std::any_of(others.begin(), others.end(), [&](const Access& b) { return conflict(a, b); });
  });
}

Access access(const Plan& plan, ValueId value, bool writes) {
  const Location& at = plan.locations[size_t(value)];
  return {at.argument, at.offset, at.offset + num_bytes(plan.graph.type(value)), writes};
}

// By launch.
std::vector<std::vector<Access>> find_accesses(const Plan& plan) {
  std::vector<std::vector<Access>> accesses;
  std::map<std::string, ValueId> effects;
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    std::vector<Access>& list = accesses.emplace_back();
    for (ValueId input : node.inputs) list.push_back(access(plan, input, false));
    for (ValueId output : node.outputs) list.push_back(access(plan, output, true));
    if (!node.op->effects) continue;
    ValueId number = effects.try_emplace(node.op->effects(node), kNoValue - 1 - ValueId(effects.size())).first->second;
    list.push_back({number, 0, 1, true});
  }
  return accesses;
}

// What the host and other programs touch between two runs.
std::vector<Access> accesses_between_runs(const Plan& plan) {
  std::vector<Access> list;
  for (const Argument& argument : plan.graph.arguments())
    if (argument.kind == Argument::Kind::kInput) list.push_back(access(plan, argument.value, true));
  for (const Result& result : plan.graph.results()) list.push_back(access(plan, result.value, true));
  for (const CopyBack& copy : plan.copies)
    for (ValueId value : {copy.target, copy.value}) list.push_back(access(plan, value, true));
  return list;
}

// Goes through the launches in order and knows, for every stream, what is done by the time that it goes on.
class Progress {
 public:
  explicit Progress(const Plan& plan)
      : plan_(plan), accesses_(find_accesses(plan)),
        known_(plan.streams.size(), std::vector<int>(plan.streams.size(), -1)), known_after_(plan.launches.size()),
        passed_(plan.streams.size()) {}

  /// The last launch before `i`, on another stream, that conflicts with it and is not known to be done; -1: none.
  int last_conflict(int i) const {
    const std::vector<int>& known = known_[stream_of(i)];
    int last = -1;
    for (size_t stream = 0; stream < passed_.size(); ++stream) {
      if (stream == stream_of(i)) continue;
      for (int other : std::views::reverse(passed_[stream])) {
        if (other <= std::max(known[stream], last)) break;
        if (conflict(accesses_[size_t(other)], accesses_[size_t(i)])) last = other;
      }
    }
    return last;
  }

  /// Launch `i` waits for `other`: then it knows what that one knew, too.
  void wait(int i, int other) {
    std::vector<int>& known = known_[stream_of(i)];
    const std::vector<int>& more = known_after_[size_t(other)];
    for (size_t stream = 0; stream < known.size(); ++stream) known[stream] = std::max(known[stream], more[stream]);
  }

  void pass(int i) {
    std::vector<int>& known = known_[stream_of(i)];
    known[stream_of(i)] = i;
    known_after_[size_t(i)] = known;
    passed_[stream_of(i)].push_back(i);
  }

 private:
  size_t stream_of(int launch) const { return size_t(plan_.launches[size_t(launch)].stream); }

  const Plan& plan_;
  std::vector<std::vector<Access>> accesses_;
  std::vector<std::vector<int>> known_;        // by stream, by stream: the last launch that is done
  std::vector<std::vector<int>> known_after_;  // by launch, by stream: when it is done
  std::vector<std::vector<int>> passed_;       // by stream: its launches so far
};

// By stream: the first launch that conflicts with what `reaching` did in the run before; -1: none.
std::vector<int> first_conflicts(const Plan& plan, int reaching) {
  std::vector<std::vector<Access>> accesses = find_accesses(plan);
  std::vector<Access> before;
  for (size_t i = 0; i < plan.launches.size(); ++i)
    if (plan.launches[i].stream == reaching) before.insert(before.end(), accesses[i].begin(), accesses[i].end());
  std::vector<int> first(plan.streams.size(), -1);
  for (size_t i = 0; i < plan.launches.size(); ++i)
    if (int& found = first[size_t(plan.launches[i].stream)];
        plan.launches[i].stream != reaching && found < 0 && conflict(before, accesses[i]))
      found = int(i);
  return first;
}

void verify_reach(const Plan& plan, int stream) {
  std::vector<std::vector<Access>> accesses = find_accesses(plan);
  std::vector<Access> between = accesses_between_runs(plan);
  for (size_t i = 0; i < plan.launches.size(); ++i)
    TOKAMAK_CHECK(plan.launches[i].stream != stream || !conflict(between, accesses[i]),
                  "node {} may reach into the next run and touches what is touched between runs",
                  plan.launches[i].node);
  for (int conflict : first_conflicts(plan, stream)) {
    if (conflict < 0) continue;
    auto waits = [&](const Launch& launch) {
      return launch.stream == plan.launches[size_t(conflict)].stream &&
             std::count(launch.after_last_run.begin(), launch.after_last_run.end(), stream);
    };
    auto end = plan.launches.begin() + conflict + 1;
    TOKAMAK_CHECK(std::any_of(plan.launches.begin(), end, waits),
                  "node {} touches what stream {} of the run before may still touch",
                  plan.launches[size_t(conflict)].node, stream);
  }
}

void verify_waits(const Plan& plan, int i) {
  const Launch& launch = plan.launches[size_t(i)];
  for (int other : launch.after)
    TOKAMAK_CHECK(other >= 0 && other < i && plan.launches[size_t(other)].stream != launch.stream,
                  "node {} waits for launch {}, which is no earlier one of another stream", launch.node, other);
}

}  // namespace

void order_streams(Plan& plan, const StreamAssignment& assignment) {
  plan.streams = assignment.streams;
  for (Launch& launch : plan.launches) {
    launch.stream = assignment.stream[size_t(launch.node)];
    launch.after.clear();
    launch.after_last_run.clear();
  }
  if (plan.streams.size() == 1) return;
  Progress progress(plan);
  for (int i = 0; i < int(plan.launches.size()); ++i) {
    std::vector<int>& after = plan.launches[size_t(i)].after;
    for (int other = progress.last_conflict(i); other >= 0; other = progress.last_conflict(i)) {
      after.push_back(other);
      progress.wait(i, other);
    }
    std::reverse(after.begin(), after.end());
    progress.pass(i);
  }
  for (int stream = 0; stream < int(plan.streams.size()); ++stream)
    if (!plan.streams[size_t(stream)].ends_with_run)
      for (int first : first_conflicts(plan, stream))
        if (first >= 0) plan.launches[size_t(first)].after_last_run.push_back(stream);
}

void verify_streams(const Plan& plan) {
  for (const Launch& launch : plan.launches)
    TOKAMAK_CHECK(launch.stream >= 0 && launch.stream < int(plan.streams.size()), "node {} is on stream {} of {}",
                  launch.node, launch.stream, plan.streams.size());
  if (plan.streams.size() == 1) return;
  Progress progress(plan);
  for (int i = 0; i < int(plan.launches.size()); ++i) {
    verify_waits(plan, i);
    for (int other : plan.launches[size_t(i)].after) progress.wait(i, other);
    int conflict = progress.last_conflict(i);
    TOKAMAK_CHECK(conflict < 0, "nodes {} and {} conflict on two streams and neither waits",
                  plan.launches[size_t(i)].node, plan.launches[size_t(conflict)].node);
    progress.pass(i);
  }
  for (int stream = 0; stream < int(plan.streams.size()); ++stream)
    if (!plan.streams[size_t(stream)].ends_with_run) verify_reach(plan, stream);
}

}  // namespace tokamak
