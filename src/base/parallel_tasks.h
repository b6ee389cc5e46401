// Tasks of unequal length over all cores. Tests: tests/base/parallel_tasks_test.cpp.
#pragma once

#include <cstdint>
#include <functional>

namespace tokamak {

/// Calls task(i) for all i in [0, count), each on the thread that is free first, in no order. What a task throws is
/// thrown when all have ended: that of the lowest i. A task may call this itself: threads that have no tasks of their
/// own left take any. While it calls, it must hold no lock that another task waits for.
void parallel_tasks(int64_t count, const std::function<void(int64_t)>& task);

}  // namespace tokamak
