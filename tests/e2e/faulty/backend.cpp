// A part of tests/e2e/faulty_tokamak, which is the program with a CPU backend that fails as a GPU does: the linker puts
// this in the place of cpu::make_backend (--wrap). TOKAMAK_FAULT="RANK KIND KERNELS": in that rank, when so many
// kernels have run.
//   illegal  a kernel fails, as the next call says (cudaErrorIllegalAddress)
//   lost     so does every later call, as of a GPU that has left the bus
//   link     the connections to other ranks break
//   memory   there is no more of it
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>

#include "backend/cpu/cpu_backend.h"

namespace tokamak {
namespace {

// Those of one host are Unix sockets; the store's are not.
void break_links() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    int fd = std::atoi(entry.path().filename().c_str());
    sockaddr_storage address = {};
    socklen_t length = sizeof address;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 && address.ss_family == AF_UNIX)
      ::shutdown(fd, SHUT_RDWR);
  }
}

class Fault {
 public:
  Fault(std::string kind, int64_t kernels) : kind_(std::move(kind)), left_(kernels) {}

  void kernel_runs() {
    check();
    if (--left_ != 0) return;
    if (kind_ == "link") return break_links();
    if (kind_ == "memory") throw std::bad_alloc();
    is_lost_ = kind_ == "lost";
    if (!is_lost_) fail("cudaStreamSynchronize", "an illegal memory access was encountered (cudaErrorIllegalAddress)");
    check();
  }
  void check() const {
    if (is_lost_) fail("cuMemcpyDtoHAsync", "the GPU has fallen off the bus (NVRM: Xid 79)");
  }

 private:
  [[noreturn]] static void fail(const std::string& call, const std::string& what) {
    throw std::runtime_error("[cuda] " + call + " failed: " + what);
  }

  std::string kind_;
  std::atomic<int64_t> left_;
  std::atomic<bool> is_lost_ = false;
};

class FaultyKernel : public Kernel {
 public:
  FaultyKernel(std::unique_ptr<Kernel> kernel, Fault& fault) : kernel_(std::move(kernel)), fault_(fault) {}
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  void use_workspace(void* at) override { kernel_->use_workspace(at); }
  bool by_reference() const override { return kernel_->by_reference(); }
  void run(std::span<const void* const> inputs, std::span<void* const> outputs) override {
    fault_.kernel_runs();
    kernel_->run(inputs, outputs);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  Fault& fault_;
};

class FaultyBackend : public Backend {
 public:
  FaultyBackend(std::unique_ptr<Backend> cpu, std::string kind, int64_t kernels)
      : cpu_(std::move(cpu)), fault_(std::move(kind), kernels) {}
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return cpu_->allocate(bytes); }
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override {
    return std::make_unique<FaultyKernel>(cpu_->compile(graph, node), fault_);
  }
  void copy_in(void* to, const void* from, int64_t bytes) override { fault_.check(), cpu_->copy_in(to, from, bytes); }
  void copy_out(void* to, const void* from, int64_t bytes) override { fault_.check(), cpu_->copy_out(to, from, bytes); }
  void copy(void* to, const void* from, int64_t bytes) override { fault_.check(), cpu_->copy(to, from, bytes); }
  void synchronize() override { fault_.check(); }
  int64_t used_bytes() const override { return cpu_->used_bytes(); }
  int64_t free_bytes() const override { return cpu_->free_bytes(); }

 private:
  std::unique_ptr<Backend> cpu_;
  Fault fault_;
};

}  // namespace
}  // namespace tokamak

using Made = std::unique_ptr<tokamak::Backend>;

extern "C" {
Made __real__ZN7tokamak3cpu12make_backendEi(int sharers);  // NOLINT

Made __wrap__ZN7tokamak3cpu12make_backendEi(int sharers) {  // NOLINT
  Made backend = __real__ZN7tokamak3cpu12make_backendEi(sharers);
  const char *asked = std::getenv("TOKAMAK_FAULT"), *rank = std::getenv("RANK");
  std::istringstream text(asked ? asked : "");
  std::string of, kind;
  int64_t kernels = 0;
  text >> of >> kind >> kernels;
  if (kind.empty() || of != (rank ? rank : "0")) return backend;
  return std::make_unique<tokamak::FaultyBackend>(std::move(backend), kind, kernels);
}
}
