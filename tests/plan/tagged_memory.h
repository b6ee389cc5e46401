// A memory in which every byte range remembers whose value it holds. Running a plan on it shows whether every kernel
// finds what it should: the rules of sharing are not used, only what is left in memory.
#pragma once

#include "plan/storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tokamak::testing {

class TaggedMemory {
 public:
  explicit TaggedMemory(const Plan& plan) : plan_(plan), arena_(size_t(plan.arena_bytes), kNoValue) {
    for (const Argument& argument : plan.graph.arguments()) arguments_[argument.value] = argument.value;
  }

  void write(ValueId storage_of, ValueId tag) {
    const Location& at = plan_.locations[size_t(storage_of)];
    if (at.argument != kNoValue) {
      arguments_[at.argument] = tag;
      return;
    }
    int64_t bytes = num_bytes(plan_.graph.type(storage_of));
    ASSERT_GE(at.offset, 0);
    ASSERT_LE(at.offset + bytes, plan_.arena_bytes);
    std::fill_n(arena_.begin() + at.offset, bytes, tag);
  }

  bool holds(ValueId storage_of, ValueId tag) const {
    const Location& at = plan_.locations[size_t(storage_of)];
    if (at.argument != kNoValue) return arguments_.at(at.argument) == tag;
    auto begin = arena_.begin() + at.offset;
    return std::all_of(begin, begin + num_bytes(plan_.graph.type(storage_of)), [&](ValueId t) { return t == tag; });
  }

 private:
  const Plan& plan_;
  ValueIds arena_;
  std::map<ValueId, ValueId> arguments_;
};

inline bool share_bytes(const Plan& plan, ValueId a, ValueId b) {
  const Location &x = plan.locations[size_t(a)], &y = plan.locations[size_t(b)];
  if (x.argument != kNoValue || y.argument != kNoValue) return x.argument == y.argument;
  return x.offset < y.offset + num_bytes(plan.graph.type(b)) && y.offset < x.offset + num_bytes(plan.graph.type(a));
}

/// After all launches: copies what the plan copies at its end, and expects every result and argument in its place.
inline void expect_end(const Plan& plan, TaggedMemory& memory) {
  ValueIds roots = find_roots(plan.graph);
  auto root = [&](ValueId value) { return roots[size_t(value)]; };
  for (const CopyBack& copy : plan.copies) {
    ASSERT_TRUE(memory.holds(copy.value, root(copy.value)));
    memory.write(copy.target, root(copy.value));
  }
  for (const Update& update : plan.graph.updates())
    ASSERT_TRUE(memory.holds(update.target, root(update.value))) << "update of %" << update.target;
  for (const Result& result : plan.graph.results())
    ASSERT_TRUE(memory.holds(result.value, root(result.value))) << "result " << result.name;
  for (const Argument& argument : plan.graph.arguments()) {
    bool updated = std::any_of(plan.graph.updates().begin(), plan.graph.updates().end(),
                               [&](const Update& update) { return update.target == argument.value; });
    ASSERT_TRUE(updated || memory.holds(argument.value, argument.value)) << argument.name << " was overwritten";
  }
}

}  // namespace tokamak::testing
