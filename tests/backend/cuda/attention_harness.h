// Runs kernels of attention one by one on the GPU, with random problems and what the op's reference makes of them.
#pragma once

#include "backend/cuda/attention_problem.h"
#include "backend/cuda/kernels.h"
#include "graph/op_def.h"
#include "ops/attention.h"
#include "ops/element_place.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

namespace tokamak::test {

using cuda::AttentionProblem;
using cuda::KernelPtr;

inline cuda::Context& gpu_context() {
  static cuda::Context context(cuda::describe_device(0), std::filesystem::temp_directory_path() / "tokamak_gpu_tests");
  return context;
}

// Runs a kernel on its own; every byte that it does not write stays NaN.
class KernelRun {
 public:
  explicit KernelRun(KernelPtr kernel, int fill = 0xff)
      : kernel_(std::move(kernel)), workspace_(kernel_->workspace_bytes()) {
    TOKAMAK_CUDA(cudaMemset(workspace_.get(), fill, size_t(workspace_.bytes())));
    kernel_->use_workspace(workspace_.get());
  }
  int64_t workspace_bytes() const { return workspace_.bytes(); }

  std::vector<HostTensor> operator()(const std::vector<HostTensor>& inputs, const std::vector<ValueType>& outputs) {
    std::vector<cuda::DeviceBuffer> buffers;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const HostTensor& input : inputs) {
      std::vector<std::byte> bytes = to_storage(input);
      buffers.emplace_back(int64_t(bytes.size()));
      TOKAMAK_CUDA(cudaMemcpy(buffers.back().get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
      in.push_back(buffers.back().get());
    }
    for (const ValueType& type : outputs) {
      buffers.emplace_back(num_bytes(type));
      TOKAMAK_CUDA(cudaMemset(buffers.back().get(), 0xff, size_t(num_bytes(type))));
      out.push_back(buffers.back().get());
    }
    TOKAMAK_CUDA(cudaDeviceSynchronize());
    kernel_->run(in, out);
    TOKAMAK_CUDA(cudaStreamSynchronize(gpu_context().queue()));
    std::vector<HostTensor> results;
    for (size_t i = 0; i < outputs.size(); ++i)
      results.push_back(read_tensor(outputs[i], [&](void* to, int64_t bytes) {
        TOKAMAK_CUDA(cudaMemcpy(to, out[i], size_t(bytes), cudaMemcpyDeviceToHost));
      }));
    return results;
  }

 private:
  KernelPtr kernel_;
  cuda::DeviceBuffer workspace_;
};

inline std::string name_of(const AttentionProblem& p) {
  return fmt::format("B={} T={} H={} D={} {} causal={} dropout={} documents={} sums={} parts={}", p.batch, p.time,
                     p.heads, p.head_dim, dtype_name(p.dtype), p.causal, p.dropout, p.documents, p.sums,
                     p.place.size() / kPlaceNumbers);
}

inline Attrs attrs_of(const AttentionProblem& p) {
  Attrs attrs{
      {"causal", p.causal}, {"dropout", p.dropout}, {"heads", p.heads}, {"scale", p.scale}, {"stream", p.stream}};
  if (p.sums) attrs.set("sums", true);
  if (!p.place.empty()) attrs.set("place", p.place);
  return attrs;
}

// A problem's tensors: random qkv and dout, and what the reference makes of them.
struct Example {
  AttentionProblem problem;
  ValueType qkv_type, out_type, lse_type;
  std::vector<HostTensor> forward_in, forward_out, backward_in, backward_out;

  explicit Example(const AttentionProblem& p)
      : problem(p), qkv_type{p.dtype, {p.batch, p.time, 3 * p.width()}},
        out_type{p.dtype, {p.batch, p.time, p.width()}}, lse_type{DType::kF32, {p.batch, p.heads, p.time}} {
    HostTensor rng(rng_type(attrs_of(p))), dout = random_tensor(out_type, 2);
    std::fill(rng.data.begin(), rng.data.end(), 1);  // the second of two parts, where it has parts
    rng[0] = 5, rng[1] = 7;
    forward_in = {random_tensor(qkv_type, 1)};
    for (double& x : forward_in[0].data) x = round_to(p.dtype, 2 * x);  // so that the softmax is not flat
    HostTensor documents = random_tensor({DType::kI32, {p.batch, p.time}}, 3, 4);
    make_starts(documents);
    if (p.dropout > 0) forward_in.push_back(rng);
    if (p.documents) forward_in.push_back(documents);
    forward_out = {HostTensor(out_type), HostTensor(lse_type)};
    run_reference(op::attention, forward_in, forward_out);
    backward_in = {forward_in[0], forward_out[0], forward_out[1], dout};
    for (double& y : backward_in[1].data) y = round_to(p.dtype, y);
    if (p.dropout > 0) backward_in.push_back(rng);
    if (p.documents) backward_in.push_back(documents);
    backward_out = {HostTensor(qkv_type)};
    run_reference(op::attention_grad, backward_in, backward_out);
  }

  void run_reference(const OpDef& op, const std::vector<HostTensor>& in, std::vector<HostTensor>& out) const {
    Node node;
    node.op = &op;
    node.attrs = attrs_of(problem);
    std::vector<const HostTensor*> pointers;
    for (const HostTensor& tensor : in) pointers.push_back(&tensor);
    op.reference(node, pointers, out);
  }

  void check(KernelPtr kernel, KernelPtr grad) const {
    ASSERT_TRUE(kernel && grad) << name_of(problem);
    Tolerance tolerance = tolerance_of(problem.dtype);
    std::vector<HostTensor> out = KernelRun(std::move(kernel))(forward_in, {out_type, lse_type});
    expect_near(out[0], forward_out[0], tolerance, "out, " + name_of(problem));
    expect_near(out[1], forward_out[1], problem.dtype == DType::kF32 ? kF32Tolerance : kF16Tolerance,
                "lse, " + name_of(problem));
    out = KernelRun(std::move(grad))(backward_in, {qkv_type});
    expect_near(out[0], backward_out[0], tolerance, "dqkv, " + name_of(problem));
  }
};

inline AttentionProblem problem(int64_t B, int64_t T, int64_t H, int64_t D, DType dtype, bool causal = true,
                                double dropout = 0, bool documents = false) {
  return {B, T, H, D, dtype, causal, 1 / std::sqrt(double(D)), dropout, 3, false, documents};
}

}  // namespace tokamak::test
