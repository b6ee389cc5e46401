// backend/cuda/cudnn_attention.h in a program built without cuDNN.
#include "backend/cuda/cudnn_attention.h"

#include "base/error.h"

namespace tokamak::cuda {
namespace {

[[noreturn]] void fail() {
  internal_error(__FILE__, __LINE__, "cudnn_supports", "this program was built without cuDNN");
}

}  // namespace

bool has_cudnn() { return false; }
std::string cudnn_version() { return "no cuDNN (not built in), so attention by own kernels"; }
bool cudnn_supports(Context&, const AttentionProblem&, AttentionPass) { return false; }
KernelPtr make_cudnn_attention(Context&, const AttentionProblem&) { fail(); }
KernelPtr make_cudnn_attention_grad(Context&, const AttentionProblem&) { fail(); }

}  // namespace tokamak::cuda
