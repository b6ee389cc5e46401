// A value that is made when it is first asked for, by one thread; others that ask wait. Tests:
// tests/base/made_once_test.cpp.
#pragma once

#include <mutex>
#include <optional>

namespace tokamak {

template <typename T>
class MadeOnce {
 public:
  /// `make` gives the value; where it throws, the next one who asks makes it.
  template <typename Make>
  const T& get(const Make& make) {
    std::call_once(once_, [&] { value_ = make(); });
    return *value_;
  }

 private:
  std::once_flag once_;
  std::optional<T> value_;
};

}  // namespace tokamak
