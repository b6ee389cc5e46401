// Memory straight from the system, in large pages where it has them, given back at once when freed. What the system
// gives is zero; a page becomes real when it is first touched. Tests: tests/base/large_pages_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>

namespace tokamak {

class LargePages {
 public:
  /// Of 2 MiB and more they begin at a multiple of that. data() is null where the system has not as much.
  explicit LargePages(int64_t bytes);
  ~LargePages();
  LargePages(const LargePages&) = delete;
  LargePages& operator=(const LargePages&) = delete;

  std::byte* data() const { return data_; }

  /// Makes pages real that have bytes [begin, end) by writing zeros. Several threads may touch parts of their own.
  void touch(int64_t begin, int64_t end);

 private:
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace tokamak
