#include "backend/backend.h"

#include "backend/chained.h"

#include <algorithm>
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

class PlainMemory : public Memory {
 public:
  explicit PlainMemory(int64_t bytes) : bytes_(std::make_unique_for_overwrite<std::byte[]>(size_t(bytes))) {}
  void* data() override { return bytes_.get(); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

// Each is done on return.
class CopiesAtOnce : public HostCopies {
 public:
  explicit CopiesAtOnce(Backend& backend) : backend_(backend) {}
  void begin() override {}
  void copy(void* to, const void* from, int64_t bytes) override { backend_.copy_out(to, from, bytes); }
  void end() override {}
  void wait() override {}
  void come_before(int /*stream*/) override {}

 private:
  Backend& backend_;
};

}  // namespace

bool ChainLink::waits_for_kernels() const { return std::find(awaited.begin(), awaited.end(), true) == awaited.end(); }

std::unique_ptr<Memory> Backend::allocate_host(int64_t bytes) { return std::make_unique<PlainMemory>(bytes); }

std::unique_ptr<HostCopies> Backend::make_host_copies() { return std::make_unique<CopiesAtOnce>(*this); }

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
