// The digest of tensors' bits on the GPU: that of the CPU. Its device code compiles without one.
#include "backend/digest.h"
#include "backend/cuda/digest_kernel.h"
#include "base/random.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"

namespace tokamak::test {
namespace {

TEST(DigestSource, compiles) { expect_compiles(cuda::digest_source(), {"digest"}, checked_architectures()); }

uint64_t run_kernel(Kernel& kernel, Backend& backend) {
  std::unique_ptr<Memory> sum = backend.allocate(sizeof(uint64_t));
  void* to = sum->data();
  uint64_t digest = 0;
  for (int i = 0; i < 2; ++i) kernel.run({}, std::span<void* const>(&to, 1));  // it does not add to what is there
  backend.copy_out(&digest, to, sizeof digest);
  return digest;
}

// Sizes around pieces and blocks, rows of a share, elements of every size.
TEST(GpuDigest, EqualsTheCpus) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  const std::vector<std::vector<PartRun>> shares = {
      {},
      {{0, 0, 1}},
      {{5, 0, 255}},
      {{0, 0, 16384}},
      {{3, 0, 40001}},
      {{0, 0, 3}, {6, 3, 3}, {12, 6, 3}, {18, 9, 2}},
      {{0, 0, 384}, {768, 384, 384}, {1536, 768, 384}, {5000, 1152, 7}},
      {{int64_t(1) << 33, 0, 1000}},
  };
  for (int64_t bytes : {1, 2, 4})
    for (const std::vector<PartRun>& share : shares) {
      int64_t elements = share.empty() ? 0 : share.back().part + share.back().count;
      std::vector<uint8_t> host(size_t(elements * bytes));
      for (size_t i = 0; i < host.size(); ++i) host[i] = uint8_t(philox4x32(3, i)[0]);
      std::unique_ptr<Memory> memory = gpu_backend().allocate(std::max<int64_t>(int64_t(host.size()), 1));
      gpu_backend().copy_in(memory->data(), host.data(), int64_t(host.size()));
      auto kernel = gpu_backend().compile_digest(digest_pieces(memory->data(), bytes, 77, share));
      uint64_t expected = 0;
      void* to = &expected;
      make_host_digest(digest_pieces(host.data(), bytes, 77, share))->run({}, std::span<void* const>(&to, 1));
      EXPECT_EQ(run_kernel(*kernel, gpu_backend()), expected) << bytes << " bytes, " << elements << " elements";
    }
}

}  // namespace
}  // namespace tokamak::test
