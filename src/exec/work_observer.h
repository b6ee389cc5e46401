// Who is told what a step asks of its backend, piece by piece, while it is asked for. Tests: tests/profile.
#pragma once

#include "plan/plan.h"

#include <string_view>

namespace tokamak {

/// A piece of work; valid during the call.
struct Work {
  enum class Kind : uint8_t {
    kRun,       // of a program, around all others of that
    kLaunch,    // plan->launches[index]
    kInput,     // an input copied in
    kCopyBack,  // plan->copies[index]
    kTransfer,  // to or from another stage of a pipeline
  };
  Kind kind = Kind::kLaunch;
  const Plan* plan = nullptr;  // of a transfer null
  int index = -1;
  int stream = 0;
  int64_t bytes = 0;      // of what is copied or sent
  std::string_view name;  // of the input, or the state that is sent
};

/// Calls come in pairs that nest, from one thread; after an error some have no end. While somebody observes, nothing is
/// recorded or replayed.
class WorkObserver {
 public:
  virtual ~WorkObserver() = default;
  virtual void begin(const Work& /*work*/) {}
  virtual void end() {}  // of the last that has begun
};

/// Does what is asked for, and tells it to an observer that is not null.
template <typename Ask>
void observed(WorkObserver* observer, const Work& work, const Ask& ask) {
  if (!observer) return ask();
  observer->begin(work);
  ask();
  observer->end();
}

}  // namespace tokamak
