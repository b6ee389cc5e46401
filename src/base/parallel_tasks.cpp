#include "base/parallel_tasks.h"

#include "base/parallel.h"

#include <atomic>
#include <exception>
#include <vector>

namespace tokamak {

void parallel_tasks(int64_t count, const std::function<void(int64_t)>& task) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>(count));
  std::atomic<int64_t> next = 0;
  parallel_for(std::min<int64_t>(count, num_threads()), 1, [&](int64_t, int64_t, int) {
    for (int64_t i; (i = next++) < count;) {
      try {
        task(i);
      } catch (...) {
        errors[size_t(i)] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace tokamak
