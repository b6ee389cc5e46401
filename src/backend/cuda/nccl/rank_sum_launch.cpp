#include "backend/cuda/nccl/rank_sum_launch.h"

#include "backend/cuda/nccl.h"
#include "base/divide.h"
#include "base/error.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256, kMostBlocks = 1024;  // of one sum
constexpr int64_t kBytesAtOnce = 16;               // of a thread

int32_t blocks_of(const PieceSum& sum, DType dtype) {
  int64_t blocks = ceil_div(sum.count * dtype_bytes(dtype), kBytesAtOnce * kThreads);
  return int32_t(std::clamp<int64_t>(blocks, 1, kMostBlocks));
}

// `Sums` of kernels/rank_sum.cuh.
class Arguments {
 public:
  explicit Arguments(size_t pieces) : pieces_(pieces), words_(size_t(sums_at_once(pieces)) * words_of_sum(), 0) {}

  void set(int at, const PieceSum& sum, int32_t first_block, int32_t blocks) {
    TOKAMAK_CHECK(sum.pieces.size() == pieces_, "{} pieces, where others have {}", sum.pieces.size(), pieces_);
    uint64_t* word = words_.data() + size_t(at) * words_of_sum();
    for (const void* piece : sum.pieces) *word++ = reinterpret_cast<uint64_t>(piece);
    *word++ = reinterpret_cast<uint64_t>(sum.to);
    *word++ = uint64_t(sum.count);
    *word = uint64_t(uint32_t(first_block)) | uint64_t(uint32_t(blocks)) << 32;
  }
  void* words() { return words_.data(); }

 private:
  size_t words_of_sum() const { return pieces_ + 3; }

  size_t pieces_;
  std::vector<uint64_t> words_;
};

}  // namespace

void add_pieces(KernelCompiler& compiler, const std::string& source, DType dtype, std::span<const PieceSum> sums,
                cudaStream_t queue) {
  if (sums.empty()) return;
  constexpr size_t kMostPieces = 500;  // addresses that fit into a launch's arguments
  size_t pieces = sums[0].pieces.size(), at_once = size_t(sums_at_once(pieces));
  TOKAMAK_CHECK(pieces <= kMostPieces, "a sum of {} pieces", pieces);
  std::shared_ptr<DeviceFunction> function = compiler.add("rank_sum", source);
  for (size_t begin = 0; begin < sums.size(); begin += at_once) {
    Arguments arguments(pieces);
    int32_t blocks = 0;
    for (size_t i = begin; i < std::min(begin + at_once, sums.size()); ++i) {
      int32_t own = blocks_of(sums[i], dtype);
      arguments.set(int(i - begin), sums[i], blocks, own);
      blocks += own;
    }
    void* pointers[] = {arguments.words(), nullptr};
    function->launch_with(queue, {dim3(unsigned(blocks)), dim3(kThreads), 0}, pointers);
  }
}

}  // namespace tokamak::cuda
