#include "backend/backend.h"

#include <chrono>

namespace tokamak {
namespace {

class CopiedBytes : public Readback {
 public:
  explicit CopiedBytes(int64_t bytes)
      : data_(std::make_unique_for_overwrite<std::byte[]>(size_t(bytes))), bytes_(size_t(bytes)) {}
  std::byte* data() { return data_.get(); }
  std::span<const std::byte> wait() override { return {data_.get(), bytes_}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  size_t bytes_;
};

}  // namespace

std::unique_ptr<Readback> Backend::read_later(const void* from, int64_t bytes) {
  auto copied = std::make_unique<CopiedBytes>(bytes);
  copy_out(copied->data(), from, bytes);
  return copied;
}

std::unique_ptr<Kernel> Backend::compile_digest(std::vector<DigestPiece> pieces) {
  return make_host_digest(std::move(pieces));
}

double Backend::time(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  synchronize();
  auto begin = Clock::now();
  work();
  synchronize();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace tokamak
