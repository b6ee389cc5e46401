#include "base/large_pages.h"

#include "base/divide.h"

#include <sys/mman.h>

#include <algorithm>

namespace tokamak {
namespace {

constexpr int64_t kLargePage = int64_t(1) << 21, kPage = 4096;

}  // namespace

// What does not fill a large page gets small ones: a large one would take memory that nothing is in.
LargePages::LargePages(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);
  int64_t large = bytes / kLargePage * kLargePage;
  mapped_bytes_ = size_t(bytes + (large > 0 ? kLargePage : 0));
  mapped_ = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    return;
  }
  data_ = static_cast<std::byte*>(mapped_);
  if (large == 0) return;
  auto address = int64_t(reinterpret_cast<intptr_t>(mapped_));
  data_ += round_up(address, kLargePage) - address;
  ::madvise(data_, size_t(large), MADV_HUGEPAGE);  // advice: a kernel without them does no harm
}

LargePages::~LargePages() {
  if (mapped_) ::munmap(mapped_, mapped_bytes_);
}

void LargePages::touch(int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end; at += kPage) static_cast<volatile std::byte*>(data_)[at] = std::byte{0};
}

}  // namespace tokamak
