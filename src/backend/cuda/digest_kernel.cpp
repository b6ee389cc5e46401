#include "backend/cuda/digest_kernel.h"

#include "backend/cuda/context.h"

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256;  // as kernels/digest.cu

class DigestKernel : public Kernel {
 public:
  DigestKernel(Context& context, const std::vector<DigestPiece>& pieces)
      : context_(context), pieces_(unsigned(pieces.size())), table_(int64_t(pieces.size() * sizeof(DigestPiece))),
        function_(context.compiler->add("digest", digest_source())) {
    TOKAMAK_CUDA(cudaMemcpyAsync(table_.get(), pieces.data(), pieces.size() * sizeof(DigestPiece),
                                 cudaMemcpyHostToDevice, context.queue()));
    TOKAMAK_CUDA(cudaStreamSynchronize(context.queue()));
  }

  void run(std::span<const void* const>, std::span<void* const> outputs) override {
    TOKAMAK_CUDA(cudaMemsetAsync(outputs[0], 0, sizeof(uint64_t), context_.queue()));
    if (pieces_ == 0) return;
    function_->launch(context_.queue(), {dim3(pieces_), dim3(kThreads), 0}, static_cast<const void*>(table_.get()),
                      outputs[0]);
  }

 private:
  Context& context_;
  unsigned pieces_;
  DeviceBuffer table_;
  std::shared_ptr<DeviceFunction> function_;
};

}  // namespace

std::string digest_source() { return "#include \"backend/cuda/kernels/digest.cu\"\n"; }

std::unique_ptr<Kernel> make_digest_kernel(Context& context, const std::vector<DigestPiece>& pieces) {
  return std::make_unique<DigestKernel>(context, pieces);
}

}  // namespace tokamak::cuda
