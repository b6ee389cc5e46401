// Runs kernels of attention one by one on the GPU, with random problems and what the op's reference makes of them.
#pragma once

#include "backend/cuda/attention_problem.h"
#include "backend/cuda/kernels.h"
#include "graph/op_def.h"
#include "ops/attention.h"
#include "ops/context_attention.h"
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

  std::vector<HostTensor> operator()(const std::vector<HostTensor>& inputs, const ValueTypes& outputs) {
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
  return fmt::format("B={} T={} H={} D={} {} causal={} dropout={} documents={} sums={} parts={} ranks={}", p.batch,
                     p.time, p.heads, p.head_dim, dtype_name(p.dtype), p.causal, p.dropout, p.documents, p.sums,
                     p.place.size() / kPlaceNumbers, p.ranks);
}

inline Attrs attrs_of(const AttentionProblem& p) {
  Attrs attrs{{"dropout", p.dropout}, {"heads", p.heads}, {"scale", p.scale}, {"stream", p.random_stream}};
  if (p.ranks == 1) attrs.set("causal", p.causal);
  if (p.sums) attrs.set("sums", true);
  if (!p.place.empty()) attrs.set("place", p.place);
  return attrs;
}

// Starts of documents of random lengths, of the rows that a rank has of each sample.
inline HostTensor random_documents(const AttentionProblem& p, int64_t rank) {
  HostTensor all = random_tensor({DType::kI32, {p.batch, p.keys()}}, 3, 4), own({DType::kI32, {p.batch, p.time}});
  make_starts(all);
  ZigZag zigzag{p.time, p.ranks, rank};
  for (int64_t i = 0; i < own.size(); ++i) own[i] = all[i / p.time * p.keys() + zigzag.position(i % p.time)];
  return own;
}

// A problem's tensors: random qkv and dout, and what the reference makes of them. Of several ranks, this one is `rank`.
struct Example {
  AttentionProblem problem;
  ValueTypes out_types, grad_types;
  std::vector<HostTensor> forward_in, forward_out, backward_in, backward_out;

  explicit Example(const AttentionProblem& p, int64_t rank = 0) : problem(p) {
    ValueType qkv{p.dtype, {p.batch, p.time, 3 * p.width()}}, out{p.dtype, {p.batch, p.time, p.width()}};
    ValueType kv{p.dtype, {p.ranks * p.batch, p.time, 2 * p.width()}};
    bool gathered = p.ranks > 1;
    out_types = {out, {DType::kF32, {p.batch, p.heads, p.time}}};
    grad_types = gathered ? std::vector{out, kv} : std::vector{qkv};
    HostTensor rng(rng_type(attrs_of(p))), dout = random_tensor(out, 2);
    std::fill(rng.data.begin(), rng.data.end(), 1);  // the second of two parts, where it has parts
    rng[0] = 5, rng[1] = 7;
    forward_in = {random_tensor(qkv, 1)};
    if (gathered)
      forward_in.insert(forward_in.end(), {random_tensor(kv, 4), HostTensor({DType::kI32, {}}, {double(rank)})});
    for (HostTensor& x : forward_in)
      if (x.type.dtype == p.dtype)
        for (double& number : x.data) number = round_to(p.dtype, 2 * number);  // so that the softmax is not flat
    if (p.dropout > 0) forward_in.push_back(rng);
    if (p.documents) forward_in.push_back(random_documents(p, rank));
    forward_out = run_reference(gathered ? op::context_attention : op::attention, forward_in, out_types);
    backward_in = forward_in;
    backward_in.insert(backward_in.begin() + ptrdiff_t(p.first()), {forward_out[0], forward_out[1], dout});
    for (double& y : backward_in[p.first()].data) y = round_to(p.dtype, y);
    backward_out = run_reference(gathered ? op::context_attention_grad : op::attention_grad, backward_in, grad_types);
  }

  std::vector<HostTensor> run_reference(const OpDef& op, const std::vector<HostTensor>& in,
                                        const ValueTypes& types) const {
    Node node;
    node.op = &op;
    node.attrs = attrs_of(problem);
    std::vector<const HostTensor*> pointers;
    for (const HostTensor& tensor : in) pointers.push_back(&tensor);
    std::vector<HostTensor> out(types.begin(), types.end());
    op.reference(node, pointers, out);
    return out;
  }

  void check(KernelPtr kernel, KernelPtr grad) const {
    ASSERT_TRUE(kernel && grad) << name_of(problem);
    Tolerance tolerance = tolerance_of(problem.dtype);
    std::vector<HostTensor> out = KernelRun(std::move(kernel))(forward_in, out_types);
    expect_near(out[0], forward_out[0], tolerance, "out, " + name_of(problem));
    expect_near(out[1], forward_out[1], problem.dtype == DType::kF32 ? kF32Tolerance : kF16Tolerance,
                "lse, " + name_of(problem));
    out = KernelRun(std::move(grad))(backward_in, grad_types);
    for (size_t i = 0; i < out.size(); ++i)
      expect_near(out[i], backward_out[i], tolerance, fmt::format("gradient {}, {}", i, name_of(problem)));
  }
};

inline AttentionProblem problem(int64_t B, int64_t T, int64_t H, int64_t D, DType dtype, bool causal = true,
                                double dropout = 0, bool documents = false) {
  return {B, T, H, D, dtype, causal, 1 / std::sqrt(double(D)), dropout, 3, false, documents};
}

// Of a rank that has T rows of each sample.
inline AttentionProblem of_ranks(int64_t ranks, AttentionProblem p) {
  p.ranks = ranks;
  return p;
}

}  // namespace tokamak::test
