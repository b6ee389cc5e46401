#include "exec/collective_kernel.h"

#include "base/divide.h"
#include "base/error.h"
#include "graph/builder.h"
#include "graph/op_def.h"
#include "ops/collective.h"
#include "ops/movement.h"
#include "ops/row_block.h"
#include "plan/plan.h"

#include <functional>

namespace tokamak {
namespace {

// A kernel of the backend for a node that is in no plan, of one input.
class InnerKernel : public Kernel {
 public:
  InnerKernel(Backend& backend, int stream, const ValueType& x,
              const std::function<ValueId(GraphBuilder&, ValueId x)>& append) {
    GraphBuilder g(graph_);
    append(g, g.input("x", x));
    kernel_ = backend.compile_on(stream, graph_, graph_.nodes().back());
  }
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  void use_workspace(void* memory) override { kernel_->use_workspace(memory); }
  void run(std::span<const void* const> inputs, std::span<void* const> outputs) override {
    kernel_->run(inputs.first(1), outputs);
  }

 private:
  Graph graph_{"inner"};
  std::unique_ptr<Kernel> kernel_;
};

// [a, b, c] -> [b, a, c]: nothing to do where a or b is 1.
std::unique_ptr<InnerKernel> make_swap(Backend& backend, int stream, DType dtype, int64_t a, int64_t b, int64_t c) {
  if (a == 1 || b == 1) return nullptr;
  return std::make_unique<InnerKernel>(backend, stream, ValueType{dtype, {a, b, c}}, [](GraphBuilder& g, ValueId x) {
    return transpose(g, x, {1, 0, 2});
  });
}

// One tensor's way through a collective: its parts put side by side, a communicator's call, and the parts put back.
struct Operand {
  using Call = std::function<void(const void* from, void* to)>;

  ValueType from, to;
  std::unique_ptr<InnerKernel> pack;    // null: it lies as it must
  Call call;                            // none: it is added with the others
  std::unique_ptr<InnerKernel> unpack;  // the same
  std::byte *packed = nullptr, *received = nullptr, *scratch = nullptr;
};

// An all_reduce, or sums in the order of a tree, of which each rank brings one part.
struct Sum {
  std::optional<SlotTree> tree;  // none: in any order
  bool scatters = false;
  Reduction reduction = Reduction::kSum;
  DType dtype = DType::kF32;
  Queue queue = nullptr;
};

class CollectiveKernel : public Kernel {
 public:
  // `is_message`: from one rank to one, which goes by copy engines only outside a group of calls.
  CollectiveKernel(Communicator& axis, std::vector<Operand> operands, const std::optional<Sum>& sum, bool is_message)
      : axis_(axis), operands_(std::move(operands)), sum_(sum), is_message_(is_message) {}

  int64_t workspace_bytes() const override {
    int64_t bytes = 0, inner = 0;
    for (const Operand& operand : operands_) {
      bytes += packed_bytes(operand) + received_bytes(operand) + scratch_bytes(operand);
      for (const auto* kernel : {&operand.pack, &operand.unpack})
        if (*kernel) inner = std::max(inner, (*kernel)->workspace_bytes());
    }
    return bytes + inner;
  }
  void use_workspace(void* memory) override {
    auto* at = static_cast<std::byte*>(memory);
    for (Operand& operand : operands_) {
      operand.packed = at;
      operand.received = at + packed_bytes(operand);
      operand.scratch = operand.received + received_bytes(operand);
      at = operand.scratch + scratch_bytes(operand);
    }
    for (Operand& operand : operands_)
      for (auto* kernel : {&operand.pack, &operand.unpack})
        if (*kernel) (*kernel)->use_workspace(at);
  }
  void run(std::span<const void* const> inputs, std::span<void* const> outputs) override {
    for (size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].pack) run_one(*operands_[i].pack, inputs[i], operands_[i].packed);
    if (sum_) return add(inputs, outputs);
    if (is_message_) return operands_[0].call(inputs[0], outputs[0]);
    axis_.group([&] {
      for (size_t i = 0; i < operands_.size(); ++i) {
        const Operand& operand = operands_[i];
        operand.call(operand.pack ? operand.packed : inputs[i], operand.unpack ? operand.received : outputs[i]);
      }
    });
    for (size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].unpack) run_one(*operands_[i].unpack, operands_[i].received, outputs[i]);
  }

 private:
  static constexpr int64_t kAlignment = 256;
  static void run_one(Kernel& kernel, const void* from, void* to) { kernel.run({&from, 1}, {&to, 1}); }
  static int64_t packed_bytes(const Operand& x) { return x.pack ? round_up(num_bytes(x.from), kAlignment) : 0; }
  static int64_t received_bytes(const Operand& x) { return x.unpack ? round_up(num_bytes(x.to), kAlignment) : 0; }

  // What lies behind it up to the next one may be added as well.
  int64_t scratch_bytes(const Operand& x) const {
    if (!sum_ || !sum_->tree) return 0;
    int64_t elements = round_up(num_bytes(x.from), kArenaAlignment) / dtype_bytes(sum_->dtype);
    return round_up(axis_.ordered_scratch_bytes(elements, sum_->dtype, *sum_->tree), kAlignment);
  }

  static bool are_apart_by(const void* first, const void* second, int64_t bytes) {
    return static_cast<const std::byte*>(second) - static_cast<const std::byte*>(first) == bytes;
  }

  // Of operands that lie side by side, and so do their sums, one: a few large messages take less time than many.
  std::vector<OrderedSum> sums_of(std::span<const void* const> parts, std::span<void* const> outputs) const {
    std::vector<OrderedSum> sums;
    int64_t behind = 0;  // bytes from the last sum's beginning to what may follow it
    for (size_t i = 0; i < operands_.size(); ++i) {
      int64_t bytes = num_bytes(operands_[i].to);
      if (!sums.empty() && !sum_->scatters && are_apart_by(sums.back().parts[0], parts[i], behind) &&
          are_apart_by(sums.back().to, outputs[i], behind)) {
        sums.back().count = (behind + bytes) / dtype_bytes(sum_->dtype);
        behind += round_up(bytes, kArenaAlignment);
      } else {
        sums.push_back({parts.subspan(i, 1), outputs[i], bytes / dtype_bytes(sum_->dtype), operands_[i].scratch});
        behind = round_up(bytes, kArenaAlignment);
      }
    }
    return sums;
  }

  void add(std::span<const void* const> inputs, std::span<void* const> outputs) {
    std::vector<const void*> parts;
    for (size_t i = 0; i < operands_.size(); ++i) parts.push_back(operands_[i].pack ? operands_[i].packed : inputs[i]);
    std::vector<OrderedSum> sums = sums_of(parts, outputs);
    if (!sum_->tree)
      axis_.group([&] {
        for (const OrderedSum& sum : sums)
          axis_.all_reduce(sum.parts[0], sum.to, sum.count, sum_->dtype, sum_->reduction, sum_->queue);
      });
    else if (sum_->scatters)
      axis_.ordered_reduce_scatter(sums, sum_->dtype, *sum_->tree, sum_->queue);
    else
      axis_.ordered_all_reduce(sums, sum_->dtype, *sum_->tree, sum_->queue);
  }

  Communicator& axis_;
  std::vector<Operand> operands_;
  std::optional<Sum> sum_;
  bool is_message_;
};

// One block of a product's rows, on a rank's own place among them.
class RowBlockKernel : public Kernel {
 public:
  RowBlockKernel(std::unique_ptr<Kernel> product, BlockOffsets at) : product_(std::move(product)), at_(std::move(at)) {}

  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }
  void use_workspace(void* memory) override { product_->use_workspace(memory); }
  bool by_reference() const override { return product_->by_reference(); }

  void run(std::span<const void* const> inputs, std::span<void* const> outputs) override {
    size_t before = at_.inputs.size() + 1;  // behind the coordinate: what the step before has written
    std::vector<const void*> operands;
    std::vector<void*> results;
    for (size_t i = 0; i < at_.inputs.size(); ++i)
      operands.push_back(static_cast<const std::byte*>(inputs[i]) + at_.inputs[i]);
    for (size_t i = 0; i < at_.outputs.size(); ++i) {
      TOKAMAK_CHECK(inputs.size() == before || inputs[before + i] == outputs[i], "rows of a product lie apart");
      results.push_back(static_cast<std::byte*>(outputs[i]) + at_.outputs[i]);
    }
    product_->run(operands, results);
  }

 private:
  std::unique_ptr<Kernel> product_;
  BlockOffsets at_;
};

class Maker {
 public:
  Maker(const MeshRanks& ranks, Backend& backend, int stream, const Graph& graph, const Node& node)
      : ranks_(ranks), backend_(backend), stream_(stream), graph_(graph), node_(node),
        size_(node.attrs.get_int("size")) {}

  std::unique_ptr<Kernel> make() const {
    if (node_.op == &op::part) return make_part();
    if (node_.op == &op::row_block) return make_row_block();
    Communicator& axis = ranks_.along(node_.attrs.get_string("axis"));
    TOKAMAK_CHECK(axis.size() == size_, "{} ranks on an axis of {}", size_, axis.size());
    std::vector<Operand> operands;
    for (size_t i = 0; i < node_.inputs.size(); ++i) operands.push_back(make_operand(axis, i));
    return std::make_unique<CollectiveKernel>(axis, std::move(operands), sum(), node_.op == &op::permute);
  }

 private:
  Operand make_operand(Communicator& axis, size_t i) const {
    ValueType from = graph_.type(node_.inputs[i]), to = graph_.type(node_.outputs[i]);
    DType dtype = from.dtype;
    Queue queue = backend_.queue(stream_);
    if (node_.op == &op::all_reduce) return {from, to, nullptr, {}, nullptr};
    if (node_.op == &op::reduce_scatter)
      return {from, to, pack(from, cut_dims(node_.attrs)[i]),
              [=, &axis, count = num_elements(to.shape)](const void* x, void* y) {
                axis.reduce_scatter(x, y, count, dtype, Reduction::kSum, queue);
              },
              nullptr};
    if (node_.op == &op::all_gather)
      return {from, to, nullptr,
              [=, &axis, count = num_elements(from.shape)](const void* x, void* y) {
                axis.all_gather(x, y, count, dtype, queue);
              },
              unpack(to, cut_dims(node_.attrs)[i])};
    if (node_.op == &op::permute)
      return {from, to, nullptr,
              [=, &axis, step = int(node_.attrs.get_int("step"))](const void* x, void* y) {
                int64_t count = num_elements(from.shape);
                int ranks = axis.size(), to_rank = (axis.rank() + step) % ranks;
                axis.send_recv(x, count, to_rank, y, count, (axis.rank() + ranks - step) % ranks, dtype, queue);
              },
              nullptr};
    TOKAMAK_CHECK(node_.op == &op::all_to_all, "no kernel of '{}'", node_.op->name);
    return {from, to, pack(from, cut_dim(node_.attrs)),
            [=, &axis, count = num_elements(to.shape) / size_](const void* x, void* y) {
              axis.all_to_all(x, y, count, dtype, queue);
            },
            unpack(to, from_dim(node_.attrs))};
  }

  std::optional<Sum> sum() const {
    bool ordered = is_ordered(node_.attrs);
    if (node_.op != &op::all_reduce && !ordered) return std::nullopt;
    Sum sum{.scatters = node_.op == &op::reduce_scatter,
            .dtype = graph_.dtype(node_.inputs[0]),
            .queue = backend_.queue(stream_)};
    if (ordered) sum.tree = {.slots = int(size_), .ranks = int(size_)};
    if (node_.op == &op::all_reduce) sum.reduction = parse_reduction(node_.attrs.get_string("reduction"));
    return sum;
  }

  // The parts of a whole, one after the other; and what came as parts one after the other, as a whole.
  std::unique_ptr<InnerKernel> pack(const ValueType& whole, CutDim at) const {
    DimParts p = parts_of(whole.shape, at, size_);
    return make_swap(backend_, stream_, whole.dtype, p.outer, p.parts, p.inner);
  }
  std::unique_ptr<InnerKernel> unpack(const ValueType& whole, CutDim at) const {
    DimParts p = parts_of(whole.shape, at, size_);
    return make_swap(backend_, stream_, whole.dtype, p.parts, p.outer, p.inner);
  }

  int32_t coordinate(ValueId value) const {
    const Argument* input = graph_.argument_of(value);
    std::optional<int32_t> coordinate = input ? ranks_.coordinate_of(*input) : std::nullopt;
    TOKAMAK_CHECK(coordinate, "'{}' at a place that is none on the mesh", node_.op->name);
    return *coordinate;
  }

  std::unique_ptr<Kernel> make_row_block() const {
    KernelNode product = kernel_node(graph_, node_);
    return std::make_unique<RowBlockKernel>(
        backend_.compile_on(stream_, product.graph, product.node),
        block_offsets(graph_, node_, coordinate(node_.inputs[product.graph.arguments().size()])));
  }

  // A rank's part of what it has: a slice at its place.
  std::unique_ptr<Kernel> make_part() const {
    const ValueType& whole = graph_.type(node_.inputs[0]);
    DimParts p = parts_of(whole.shape, cut_dim(node_.attrs), size_);
    return std::make_unique<InnerKernel>(
        backend_, stream_, ValueType{whole.dtype, {p.outer, p.parts, p.inner}},
        [&](GraphBuilder& g, ValueId x) { return slice(g, x, 1, coordinate(node_.inputs[1]), 1); });
  }

  const MeshRanks& ranks_;
  Backend& backend_;
  int stream_;
  const Graph& graph_;
  const Node& node_;
  int64_t size_;  // of the axis
};

}  // namespace

bool is_of_ranks(const Node& node) { return node.op->together || node.op == &op::part || node.op == &op::row_block; }

std::unique_ptr<Kernel> make_collective_kernel(const MeshRanks& ranks, Backend& backend, int stream, const Graph& graph,
                                               const Node& node) {
  return Maker(ranks, backend, stream, graph, node).make();
}

}  // namespace tokamak
