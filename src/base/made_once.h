// A value that is made when it is first asked for, by one thread; others that ask wait. Tests:
// tests/base/made_once_test.cpp.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

namespace tokamak {

// Not std::call_once: under ThreadSanitizer, whose pthread_once does not see an exception, the next
// one who asks after a `make` that threw would wait forever.
template <typename T>
class MadeOnce {
 public:
  /// `make` gives the value; where it throws, the next one who asks makes it.
  template <typename Make>
  const T& get(const Make& make) {
    if (!made_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(making_);
      if (!value_) value_.emplace(make());
      made_.store(true, std::memory_order_release);
    }
    return *value_;
  }

 private:
  std::mutex making_;
  std::optional<T> value_;
  std::atomic<bool> made_ = false;
};

}  // namespace tokamak
