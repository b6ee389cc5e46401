// Copies to the host beside kernels: what they are of, and what waits for them.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cuda/cuda_backend.h"
#include "tests/backend/cuda/gpu_harness.h"

namespace tokamak::test {
namespace {

constexpr int64_t kBytes = int64_t(1) << 28;  // milliseconds to the host, and far less on the device

// Tensors of zeros and of ones, and one that is copied.
class HostCopiesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << kNoGpu;
    backend_ = cuda::make_backend(0, {});
    copies_ = backend_->make_host_copies();
    for (auto* tensor : {&zeros_, &ones_, &state_}) *tensor = backend_->allocate(kBytes);
    std::vector<char> ones(size_t(kBytes), 1);
    backend_->copy_in(ones_->data(), ones.data(), kBytes);
    host_ = backend_->allocate_host(kBytes);
    ASSERT_TRUE(host_);
  }

  void copy() {
    copies_->begin();
    copies_->copy(host_->data(), state_->data(), kBytes);
    copies_->end();
  }
  void set(Memory& to) { backend_->copy(state_->data(), to.data(), kBytes); }
  bool copied_only(char value) {
    copies_->wait();
    auto* first = static_cast<const char*>(host_->data());
    return std::all_of(first, first + kBytes, [&](char c) { return c == value; });
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HostCopies> copies_;
  std::unique_ptr<Memory> zeros_, ones_, state_, host_;
};

TEST_F(HostCopiesTest, AreOfWhatStoodThereAndWhatComesAfterWaits) {
  copies_->come_before(0);  // of none
  for (int round = 0; round < 4; ++round) {
    set(*ones_);
    copy();
    copies_->come_before(0);
    set(*zeros_);
    EXPECT_TRUE(copied_only(1)) << round;
  }
}

TEST_F(HostCopiesTest, ReplaysWaitForThoseThatWereAskedForSince) {
  std::unique_ptr<Recording> recording = backend_->record([&] {
    copies_->come_before(0);
    set(*zeros_);
  });
  ASSERT_TRUE(recording);
  recording->replay();
  for (int round = 0; round < 4; ++round) {
    set(*ones_);
    copy();
    recording->replay();
    EXPECT_TRUE(copied_only(1)) << round;
    copy();
    EXPECT_TRUE(copied_only(0)) << round;
    recording->replay();
  }
}

TEST_F(HostCopiesTest, OtherStreamsWaitToo) {
  for (int round = 0; round < 4; ++round) {
    set(*ones_);
    backend_->synchronize();
    copy();
    copies_->come_before(1);
    backend_->copy_on(backend_->queue(1), state_->data(), zeros_->data(), kBytes);
    EXPECT_TRUE(copied_only(1)) << round;
    std::unique_ptr<StreamEvent> done = backend_->make_event();
    done->record(1);
    done->wait(0);
  }
}

TEST_F(HostCopiesTest, MemoryThatThereIsNotIsNotGiven) {
  EXPECT_FALSE(backend_->allocate_host(int64_t(1) << 50));
  set(*ones_);
  copy();
  EXPECT_TRUE(copied_only(1)) << "after that all goes on";
}

}  // namespace
}  // namespace tokamak::test
