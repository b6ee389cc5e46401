// Attention through cuDNN's graph API. The front-end's headers are heavy: this is the only file that includes them.
#include "backend/cuda/cudnn_attention.h"

#include "backend/cuda/cudnn/library.h"
#include "base/error.h"

#include <cudnn_frontend.h>

#include <map>

namespace tokamak::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Pointers = std::unordered_map<int64_t, void*>;

// Names of the graph's tensors.
enum Uid : int64_t { kQ = 1, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv };

void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) throw_cuda_error(call, cudnnGetErrorString(status));
}
void check(fe::error_t error, const char* call) {
  if (error.is_bad()) throw_cuda_error(call, error.get_message());
}

class Handle {
 public:
  explicit Handle(const Context& context) {
    TOKAMAK_CUDA(cudaSetDevice(context.info.ordinal));
    check(cudnnCreate(&handle_), "cudnnCreate");
    check(cudnnSetStream(handle_, context.queue()), "cudnnSetStream");
  }
  ~Handle() { cudnnDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

// A graph of one attention, for `problem.batch` sequences.
class Plan {
 public:
  Plan(const AttentionProblem& problem, AttentionPass pass) : problem_(problem) {
    fe::DataType_t type = problem.dtype == DType::kBF16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
    graph_.set_io_data_type(type)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (pass == AttentionPass::kForward)
      describe_forward();
    else
      describe_backward();
  }

  /// False when cuDNN has nothing for the graph.
  bool build(cudnnHandle_t handle) {
    if (graph_.validate().is_bad() || graph_.build_operation_graph(handle).is_bad() ||
        graph_.create_execution_plans({fe::HeurMode_t::A}).is_bad() || graph_.check_support(handle).is_bad())
      return false;
    check(graph_.build_plans(handle, fe::BuildPlanPolicy_t::HEURISTICS_CHOICE), "cudnn_frontend build_plans");
    check(graph_.get_workspace_size(workspace_bytes_), "cudnn_frontend get_workspace_size");
    return true;
  }

  int64_t batch() const { return problem_.batch; }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  void run(cudnnHandle_t handle, Pointers pointers, void* workspace) {
    check(graph_.execute(handle, pointers, workspace), "cudnn_frontend execute");
  }

 private:
  // A (B, H, T, D) view of rows that are `row` elements apart.
  void lay(const Tensor& tensor, Uid uid, int64_t row) const {
    const AttentionProblem& p = problem_;
    tensor->set_uid(uid).set_dim({p.batch, p.heads, p.time, p.head_dim}).set_stride({p.time * row, p.head_dim, row, 1});
  }
  void lay_lse(const Tensor& tensor) const {
    const AttentionProblem& p = problem_;
    tensor->set_uid(kLse)
        .set_dim({p.batch, p.heads, p.time, 1})
        .set_stride({p.heads * p.time, p.time, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
  }
  Tensor input(Uid uid, int64_t row) {
    Tensor tensor = graph_.tensor(fe::graph::Tensor_attributes());
    lay(tensor, uid, row);
    return tensor;
  }
  void output(const Tensor& tensor, Uid uid, int64_t row) const {
    lay(tensor, uid, row);
    tensor->set_output(true);
  }
  template <typename Attributes>
  void set_common(Attributes& attributes) const {
    attributes.set_attn_scale(float(problem_.scale));
    if (problem_.causal)
      attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  }

  void describe_forward() {
    int64_t C = problem_.width();
    fe::graph::SDPA_attributes attributes;
    attributes.set_name("attention").set_generate_stats(true);
    set_common(attributes);
    Tensor q = input(kQ, 3 * C), k = input(kK, 3 * C), v = input(kV, 3 * C);
    auto [out, lse] = graph_.sdpa(q, k, v, attributes);
    output(out, kOut, C);
    lay_lse(lse);
    lse->set_output(true);
  }
  void describe_backward() {
    int64_t C = problem_.width();
    fe::graph::SDPA_backward_attributes attributes;
    attributes.set_name("attention_grad").set_deterministic_algorithm(!problem_.any_order);
    set_common(attributes);
    Tensor q = input(kQ, 3 * C), k = input(kK, 3 * C), v = input(kV, 3 * C);
    Tensor out = input(kOut, C), dout = input(kDout, C), lse = graph_.tensor(fe::graph::Tensor_attributes());
    lay_lse(lse);
    auto [dq, dk, dv] = graph_.sdpa_backward(q, k, v, out, dout, lse, attributes);
    output(dq, kDq, 3 * C);
    output(dk, kDk, 3 * C);
    output(dv, kDv, 3 * C);
  }

  AttentionProblem problem_;
  fe::graph::Graph graph_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace

// Layers with equal problems share a plan; null: not supported.
struct CudnnPlans {
  explicit CudnnPlans(const Context& context) : handle(context) {}
  Handle handle;
  std::map<std::pair<AttentionProblem, AttentionPass>, std::shared_ptr<Plan>> plans;
};

namespace {

std::shared_ptr<Plan> find_plan(Context& context, AttentionProblem problem, AttentionPass pass) {
  if (!cudnn_may_support(problem)) return nullptr;
  if (!context.cudnn) context.cudnn = std::make_shared<CudnnPlans>(context);
  if (pass == AttentionPass::kBackward) problem.batch = cudnn_grad_batch(problem);
  problem.random_stream = 0;  // which only dropout reads
  auto [entry, fresh] = context.cudnn->plans.try_emplace({problem, pass});
  if (fresh) {
    auto plan = std::make_shared<Plan>(problem, pass);
    if (plan->build(context.cudnn->handle.get())) entry->second = std::move(plan);
  }
  return entry->second;
}

class CudnnAttentionKernel : public Kernel {
 public:
  CudnnAttentionKernel(Context& context, const AttentionProblem& problem, AttentionPass pass)
      : plan_(find_plan(context, problem, pass)), plans_(context.cudnn), problem_(problem) {
    TOKAMAK_CHECK(plan_, "cuDNN has no attention for this problem: time {}, head_dim {}", problem.time,
                  problem.head_dim);
  }

  int64_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  void use_workspace(void* workspace) override { workspace_ = workspace; }

 protected:
  // The batch is run part by part.
  void run_part(Pointers pointers) { plan_->run(plans_->handle.get(), std::move(pointers), workspace_); }
  int64_t part() const { return plan_->batch(); }
  // In a tensor (B, T, widths * C): its sequence, and there column offset * C.
  void* at(const void* base, int64_t sequence, int64_t widths, int64_t offset = 0) const {
    int64_t element = (sequence * problem_.time * widths + offset) * problem_.width();
    return const_cast<std::byte*>(static_cast<const std::byte*>(base)) + element * 2;  // both dtypes have two bytes
  }
  void* lse_at(const void* base, int64_t sequence) const {
    return const_cast<float*>(static_cast<const float*>(base)) + sequence * problem_.heads * problem_.time;
  }
  const AttentionProblem& problem() const { return problem_; }

 private:
  std::shared_ptr<Plan> plan_;
  std::shared_ptr<CudnnPlans> plans_;  // owns the handle
  AttentionProblem problem_;
  void* workspace_ = nullptr;
};

class ForwardKernel : public CudnnAttentionKernel {
 public:
  ForwardKernel(Context& context, const AttentionProblem& problem)
      : CudnnAttentionKernel(context, problem, AttentionPass::kForward) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    for (int64_t b = 0; b < problem().batch; b += part())
      run_part({{kQ, at(in[0], b, 3, 0)},
                {kK, at(in[0], b, 3, 1)},
                {kV, at(in[0], b, 3, 2)},
                {kOut, at(out[0], b, 1)},
                {kLse, lse_at(out[1], b)}});
  }
};

class BackwardKernel : public CudnnAttentionKernel {
 public:
  BackwardKernel(Context& context, const AttentionProblem& problem)
      : CudnnAttentionKernel(context, problem, AttentionPass::kBackward) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    for (int64_t b = 0; b < problem().batch; b += part())
      run_part({{kQ, at(in[0], b, 3, 0)},
                {kK, at(in[0], b, 3, 1)},
                {kV, at(in[0], b, 3, 2)},
                {kOut, at(in[1], b, 1)},
                {kLse, lse_at(in[2], b)},
                {kDout, at(in[3], b, 1)},
                {kDq, at(out[0], b, 3, 0)},
                {kDk, at(out[0], b, 3, 1)},
                {kDv, at(out[0], b, 3, 2)}});
  }
};

}  // namespace

bool has_cudnn() { return cudnn_opens(); }

std::string cudnn_version() {
  if (!cudnn_opens()) return "no cuDNN (libcudnn.so.9 is not found), so attention by own kernels";
  size_t v = cudnnGetVersion();  // 91900
  return fmt::format("cuDNN {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

bool cudnn_supports(Context& context, const AttentionProblem& problem, AttentionPass pass) {
  return find_plan(context, problem, pass) != nullptr;
}
KernelPtr make_cudnn_attention(Context& context, const AttentionProblem& problem) {
  return std::make_unique<ForwardKernel>(context, problem);
}
KernelPtr make_cudnn_attention_grad(Context& context, const AttentionProblem& problem) {
  return std::make_unique<BackwardKernel>(context, problem);
}

}  // namespace tokamak::cuda
