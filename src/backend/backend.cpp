#include "backend/backend.h"

#include <chrono>
#include <vector>

namespace tokamak {
namespace {

class CopiedBytes : public Readback {
 public:
  explicit CopiedBytes(int64_t bytes) : data_(size_t(bytes)) {}
  std::byte* data() { return data_.data(); }
  std::span<const std::byte> wait() override { return data_; }

 private:
  std::vector<std::byte> data_;
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
