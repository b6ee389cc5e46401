// The chunked classifier: for every chunk of rows the logits' matmul, one row kernel that turns them into losses and
// their own gradient, and the two matmuls of the gradients. dW is written by the first chunk and added to by the
// others.
#include "backend/cuda/classifier_parts.h"
#include "backend/cuda/kernels.h"
#include "base/divide.h"
#include "base/error.h"
#include "passes/classifier_softmax.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

constexpr int64_t kPieceAlignment = 256;

KernelPtr make_part(Context& context, const Graph& graph) {
  return make_matmul_kernel(context, graph, graph.nodes().back());
}

// The row group between the matmuls: (logits, targets, dloss) -> (losses, dlogits), for dlogits of eight bits with an
// inverse scale more, whatever the order in which the group has its operands.
class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(Context& context, const Graph& graph) : group_(make_group_kernel(context, graph, graph.nodes()[0])) {
    const Node& node = graph.nodes()[0];
    for (ValueId input : node.inputs)
      for (size_t i = 0; i < graph.arguments().size(); ++i)
        if (graph.arguments()[i].value == input) inputs_.push_back(i);
    for (ValueId output : node.outputs)
      for (size_t i = 0; i < graph.results().size(); ++i)
        if (graph.results()[i].value == output) outputs_.push_back(i);
    TOKAMAK_CHECK(inputs_.size() == node.inputs.size() && outputs_.size() == node.outputs.size(),
                  "the classifier's softmax has operands of its own");
  }
  int64_t workspace_bytes() const override { return group_->workspace_bytes(); }
  void use_workspace(void* memory) override { group_->use_workspace(memory); }
  void run(std::span<const void* const> in, std::span<void* const> out) override {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (size_t i : inputs_) inputs.push_back(in[i]);
    for (size_t i : outputs_) outputs.push_back(out[i]);
    group_->run(inputs, outputs);
  }

 private:
  KernelPtr group_;
  std::vector<size_t> inputs_, outputs_;  // by operand of the group: the place in run()'s
};

Graph softmax_graph(const ClassifierSizes& s, int64_t rows) {
  return classifier_softmax(rows, s.vocab, s.classes, s.dtype, s.softcap, s.has_narrow_gradient());
}

KernelPtr make_softmax(Context& context, const ClassifierSizes& s, int64_t rows) {
  return std::make_unique<SoftmaxKernel>(context, softmax_graph(s, rows));
}

// The kernels for one number of rows; those of the weight's gradient only where there is a chunk that needs them.
struct ChunkKernels {
  ChunkKernels(Context& context, const ClassifierSizes& s, int64_t rows, bool has_first, bool has_next) {
    softmax = make_softmax(context, s, rows);  // compiled while the matmuls are chosen
    forward = make_part(context, classifier_logits(s, rows));
    dx = make_part(context, classifier_dx(s, rows));
    if (s.has_narrow_gradient()) {
      Graph part = classifier_turned_x(s, rows);
      turned_x = make_transpose_kernel(context, part, part.nodes().back());
    }
    if (has_first) first_dweight = make_part(context, classifier_dweight(s, rows, false));
    if (has_next) next_dweight = make_part(context, classifier_dweight(s, rows, true));
  }
  std::vector<Kernel*> all() const {
    std::vector<Kernel*> kernels;
    for (const KernelPtr* kernel : {&forward, &softmax, &dx, &turned_x, &first_dweight, &next_dweight})
      if (*kernel) kernels.push_back(kernel->get());
    return kernels;
  }
  KernelPtr forward, softmax, dx, turned_x, first_dweight, next_dweight;
};

// Of x transposed, before the scratch memory of the parts.
int64_t turned_x_bytes(const ClassifierSizes& s) {
  return s.has_narrow_gradient() ? round_up(s.chunk * s.width, kPieceAlignment) : 0;
}

class ClassifierKernel : public Kernel {
 public:
  ClassifierKernel(Context& context, const Graph& graph, const Node& node)
      : s_(read_classifier(graph, node)), chunk_(context, s_, s_.chunk, true, s_.rows >= 2 * s_.chunk) {
    int64_t rest = s_.rows % s_.chunk;
    if (rest > 0) rest_ = std::make_unique<ChunkKernels>(context, s_, rest, false, true);
  }

  int64_t workspace_bytes() const override {
    int64_t bytes = 0;
    for (Kernel* kernel : kernels()) bytes = std::max(bytes, kernel->workspace_bytes());
    return turned_x_bytes(s_) + bytes;
  }
  void use_workspace(void* memory) override {
    turned_x_ = memory;
    for (Kernel* kernel : kernels()) kernel->use_workspace(static_cast<char*>(memory) + turned_x_bytes(s_));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    for (int64_t row = 0; row < s_.rows; row += s_.chunk)
      run_chunk(row + s_.chunk <= s_.rows ? chunk_ : *rest_, row, in, out);
  }

 private:
  std::vector<Kernel*> kernels() const {
    std::vector<Kernel*> all = chunk_.all();
    if (rest_)
      for (Kernel* kernel : rest_->all()) all.push_back(kernel);
    return all;
  }

  void run_chunk(ChunkKernels& k, int64_t row, std::span<const void* const> in, std::span<void* const> out) const {
    auto from = [](const void* base, int64_t bytes) { return static_cast<const char*>(base) + bytes; };
    auto to = [](void* base, int64_t bytes) { return static_cast<char*>(base) + bytes; };
    int64_t x_bytes = row * s_.width * dtype_bytes(s_.dtype);
    const void *x = from(in[0], x_bytes), *weight = in[1], *targets = from(in[2], row * 4);
    const void* dloss = from(in[3], row * 4);
    void *losses = to(out[0], row * 4), *dx = to(out[1], x_bytes), *dweight = out[2], *logits = out[3];
    const void* own_x = s_.has_own_operands() ? from(in[4], row * s_.width * dtype_bytes(storage_of(s_.logits))) : x;
    if (s_.has_own_operands())
      run(*k.forward, {own_x, in[5], in[6], in[7]}, {logits});
    else
      run(*k.forward, {x, weight}, {logits});
    Kernel& dweight_kernel = row == 0 ? *k.first_dweight : *k.next_dweight;
    if (s_.has_narrow_gradient()) {
      run(*k.softmax, {logits, targets, dloss, in[10]}, {losses, out[4]});
      run(*k.dx, {out[4], in[8], in[9], in[7]}, {dx});
      run(*k.turned_x, {own_x}, {turned_x_});
      run(dweight_kernel, {out[4], turned_x_, in[9], in[6], dweight}, {dweight});
    } else {
      run(*k.softmax, {logits, targets, dloss}, {losses, logits});
      run(*k.dx, {logits, weight}, {dx});
      run(dweight_kernel, {logits, x, dweight}, {dweight});
    }
  }

  static void run(Kernel& kernel, std::initializer_list<const void*> in, std::initializer_list<void*> out) {
    kernel.run({in.begin(), in.size()}, {out.begin(), out.size()});
  }

  ClassifierSizes s_;
  ChunkKernels chunk_;
  std::unique_ptr<ChunkKernels> rest_;  // of the last rows, when they are fewer
  void* turned_x_ = nullptr;
};

}  // namespace

KernelPtr make_classifier_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<ClassifierKernel>(context, graph, node);
}

void compile_classifier_ahead(Context& context, const Graph& graph, const Node& node) {
  ClassifierSizes s = read_classifier(graph, node);
  make_softmax(context, s, s.chunk);
  if (int64_t rest = s.rows % s.chunk; rest > 0) make_softmax(context, s, rest);
}

int64_t classifier_scratch(const DeviceInfo& info, const Graph& graph, const Node& node) {
  ClassifierSizes s = read_classifier(graph, node);
  int64_t bytes = 0;
  for (int64_t rows : {s.chunk, s.rows % s.chunk}) {
    if (rows == 0) continue;
    for (const Graph& part : {classifier_logits(s, rows), softmax_graph(s, rows), classifier_dx(s, rows),
                              classifier_dweight(s, rows, false)})
      bytes = std::max(bytes, scratch_bytes(info, part, part.nodes().back()));
  }
  return turned_x_bytes(s) + bytes;
}

}  // namespace tokamak::cuda
