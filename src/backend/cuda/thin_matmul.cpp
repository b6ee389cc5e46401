#include "backend/cuda/thin_matmul.h"

#include "backend/cuda/codegen/function.h"
#include "backend/cuda/codegen/row.h"
#include "backend/cuda/device_types.h"
#include "base/divide.h"
#include "graph/op_def.h"
#include "ops/generate.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace tokamak::cuda {
namespace {

constexpr int64_t kMostRows = 8;
constexpr int64_t kResident = 3;  // blocks of a multiprocessor that run at a time where b is (N, K)

struct Shape {
  int threads = 256;
  int columns = 0;        // of a block, where b is (K, N)
  int ahead = 1;          // tiles of a warp under way, where the tensor cores multiply
  int rows_per_warp = 0;  // of b, where it is (N, K)
  int64_t blocks = 0;
};

// Where b is (K, N).
bool takes_tensor_cores(const NumberFormat& format) { return dtype_bytes(storage_of(format)) == 2; }

// As in TensorColumns of kernels/thin_columns.cuh.
int64_t shares_of(int columns) { return 64 / columns; }

// Few and wide blocks, so that those of the next kernels of a chain find room beside them; narrower ones where there
// are too few of them, or where one would have to read very much. So many warps that each has three tiles at most;
// where that is not enough, fewer, whose registers hold more tiles.
Shape tensor_shape(const MatmulProblem& p) {
  constexpr int64_t kFewest = 36, kMany = 128, kMostBytes = 256 << 10;
  constexpr int64_t kWarps = 16, kTiles = 3, kDeepWarps = 12;
  constexpr int64_t kRegisters = 1 << 16;                       // of a multiprocessor
  constexpr int64_t kTileRegisters = 16, kOtherRegisters = 32;  // of a thread
  Shape shape;
  for (int columns : {64, 32, 16}) {
    shape.columns = columns;
    shape.blocks = ceil_div(p.n, columns);
    bool enough = shape.blocks >= kFewest && columns * p.k * 2 <= kMostBytes;
    if (enough || shape.blocks >= kMany) break;
  }
  int64_t shares = shares_of(shape.columns), tiles = ceil_div(p.k, 16 * shares);
  int64_t warps = std::clamp<int64_t>(ceil_div(tiles, 2), 2, kWarps);
  if (ceil_div(tiles, warps) > kTiles) warps = kDeepWarps;
  int64_t sums = kTileRegisters * ceil_div(p.m * shares, 8);
  int64_t registers = std::min<int64_t>(kRegisters / (32 * warps), 255) - kOtherRegisters - sums;
  shape.threads = int(32 * warps);
  shape.ahead = int(std::clamp<int64_t>(registers / kTileRegisters, 1, ceil_div(tiles, warps)));
  return shape;
}

// Narrow blocks where there are few columns, so that enough of them are at work; in a block so many threads that each
// has some loads under way. Not by the number of rows, which the order of a sum must not depend on.
Shape shape_of(const MatmulProblem& p) {
  constexpr int64_t kBlocks = 128, kLoads = 6;
  Shape shape;
  if (p.trans_b) {
    shape.rows_per_warp = p.m > 2 ? 2 : 4;
    shape.blocks = ceil_div(p.n, shape.threads / 32 * shape.rows_per_warp);
    return shape;
  }
  if (takes_tensor_cores(p.a)) return tensor_shape(p);
  for (int64_t lanes : {8, 4, 2}) {
    shape.columns = int(lanes * 4);
    shape.blocks = ceil_div(p.n, shape.columns);
    int64_t threads = int64_t(std::bit_floor(uint64_t(std::max<int64_t>(1, p.k * lanes / kLoads))));
    shape.threads = int(std::clamp<int64_t>(threads, 64, 512));
    if (shape.blocks >= kBlocks) break;
  }
  return shape;
}

constexpr size_t kRowInputs = 8, kRowOutputs = 3;
constexpr int64_t kStaticBytes = 48 << 10, kScratchBytes = 1 << 10;  // kScratch: of reductions

// As in the text of row_text.
struct RowArguments {
  const void* in[kRowInputs] = {};
  void* out[kRowOutputs] = {};
};

RowArguments row_arguments(const MatmulPrologue& prologue, std::span<const void* const> in,
                           std::span<void* const> out) {
  RowArguments arguments;
  for (size_t i = 0; i < prologue.inputs.size(); ++i) arguments.in[i] = in[size_t(prologue.inputs[i])];
  for (size_t r = 0; r < prologue.outputs.size(); ++r)
    if (int at = prologue.outputs[r]; at >= 0) arguments.out[r] = out[size_t(at)];
  return arguments;
}

int made_by(const MatmulPrologue& prologue) {
  return int(std::find(prologue.outputs.begin(), prologue.outputs.end(), -1) - prologue.outputs.begin());
}

// Of a block that has all of a there; the sums of many rows come in the same place.
int64_t shared_bytes(const MatmulForm& form, const Shape& shape) {
  int64_t rows = form.m * form.k * dtype_bytes(storage_of(form.formats.a)), parts = 0;
  if (!form.trans_b) {
    int64_t shares = takes_tensor_cores(form.formats.a) ? shares_of(shape.columns) : 1;
    parts = 4 * shape.threads / 32 * shares * form.m * shape.columns;
  }
  return (form.m > 2 ? std::max(rows, parts) : rows + parts) + kScratchBytes;
}

// Whether each block can make the rows that the form begins with: matrices of sums along a row and pointwise ops, for
// which there is room in its shared memory.
bool takes_rows(const MatmulForm& form, const Shape& shape) {
  const MatmulPrologue& prologue = *form.prologue;
  const GroupBody& rows = prologue.rows;
  auto is_plain = [](const GroupValue& v) { return !v.is(op::random_uniform) && !v.reduces_rows(); };
  auto is_matrix = [&](const GroupResult& r) { return rows.is_full(rows.values[size_t(r.value)]); };
  return rows.rows == form.m && rows.cols == form.k && prologue.inputs.size() <= kRowInputs &&
         prologue.outputs.size() <= kRowOutputs && std::all_of(rows.values.begin(), rows.values.end(), is_plain) &&
         std::all_of(rows.results.begin(), rows.results.end(), is_matrix) && shared_bytes(form, shape) <= kStaticBytes;
}

bool is_awaited(const KernelStart& start, int input) {
  return input >= 0 && start.link && start.link->awaited[size_t(input)];
}

// await_rows(), which puts what the rows are made of into shared memory, each a matrix of M rows.
std::string await_text(const MatmulForm& form, const KernelStart& start) {
  std::string text = "__device__ inline void await_rows(RowArguments& arguments) {\n", from, to, type, taken;
  int count = 0;
  for (const GroupValue& v : form.prologue->rows.values) {
    if (v.outer == kNoValue || !is_awaited(start, form.prologue->inputs[size_t(v.outer)])) continue;
    type = device_type(v.dtype);
    from += fmt::format("static_cast<const {}*>(arguments.in[{}]), ", type, v.outer);
    to += fmt::format("rows[{}], ", count);
    taken += fmt::format("  arguments.in[{}] = rows[{}];\n", v.outer, count++);
  }
  if (count == 0) return text + "}\n";
  return text + fmt::format(
                    "  __shared__ __align__(16) {0} rows[{1}][kM * kK];\n  const {0}* const from[] = {{{2}}};\n"
                    "  {0}* const to[] = {{{3}}};\n  await_all<kThreads>(from, to, kM * kK);\n{4}"
                    "  __syncthreads();\n}}\n",
                    type, count, from, to, taken);
}

// make_rows() and await_rows(), which do nothing where there is no prologue.
std::string row_text(const MatmulNode& node, const Shape& shape, const KernelStart& start) {
  std::string text =
      fmt::format("struct RowArguments {{\n  const void* in[{}];\n  void* out[{}];\n}};\n", kRowInputs, kRowOutputs);
  if (!node.form.prologue)
    return text +
           "__device__ inline void make_rows(const RowArguments&, Element*) {}\n"
           "__device__ inline void await_rows(RowArguments&) {}\n";
  const MatmulPrologue& prologue = *node.form.prologue;
  return text + await_text(node.form, start) + "namespace rows {\n" +
         generate_row_function(prologue.rows, made_by(prologue), shape.threads) +
         "}  // namespace rows\nusing rows::make_rows;\n";
}

class ThinMatmulKernel : public Kernel {
 public:
  ThinMatmulKernel(Context& context, const MatmulNode& node, const KernelStart& start)
      : context_(context), form_(node.form), shape_(shape_of(node.problem)),
        function_(context.compiler->add(node.problem.trans_b ? "multiply_rows" : "multiply_columns",
                                        thin_matmul_source(node, start))),
        emptied_(start.link) {
    if (form_.trans_b) shape_.blocks = std::min(shape_.blocks, context.info.multiprocessors * kResident);
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    auto operand = [&](int at) -> const void* { return at >= 0 ? in[size_t(at)] : nullptr; };
    LaunchShape shape{dim3(unsigned(shape_.blocks)), dim3(unsigned(shape_.threads))};
    const void *a = operand(form_.a), *b = operand(form_.b), *bias = operand(form_.bias);
    const void* addend = operand(form_.addend);
    void* y = out[size_t(form_.y)];
    function_->launch(context_.queue(), shape, a, b, bias, addend, y,
                      form_.prologue ? row_arguments(*form_.prologue, in, out) : RowArguments(), emptied_);
  }

 private:
  Context& context_;
  MatmulForm form_;
  Shape shape_;
  std::shared_ptr<DeviceFunction> function_;
  Emptied emptied_;
};

}  // namespace

bool thin_supports(const MatmulNode& node) {
  const MatmulProblem& p = node.problem;
  const MatmulForm& f = node.form;
  int64_t vector = 16 / dtype_bytes(storage_of(p.a));
  bool plain = f.operand < 0 && f.argument < 0 && f.sums < 0 && f.narrow_scale < 0;
  bool typed = !f.function || f.function->results[0].type.dtype == p.output;
  bool sizes = p.k % vector == 0 && (p.trans_b || p.n % vector == 0) && std::max(p.n, p.k) < int64_t(1) << 30;
  bool rows = !f.prologue || takes_rows(f, shape_of(p));
  return has_library_formats(p) && !p.scaled && p.batch == 1 && p.m <= kMostRows && !p.trans_a && plain && typed &&
         sizes && rows;
}

bool reads_weights_early(const Graph& graph, const Node& node, const MatmulForm& form) {
  ValueId weights = behind_all_views(graph, node.inputs[size_t(form.b)]);
  const Argument* argument = graph.argument_of(weights);
  if (!argument || argument->kind != Argument::Kind::kParameter) return false;
  for (const Update& update : graph.updates())
    if (update.target == weights) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return graph.producer(behind_all_views(graph, input)) >= 0; });
}

bool thin_can_chain(const Graph& graph, const Node& node, const MatmulNode& matmul) {
  const MatmulForm& form = matmul.form;
  if (!thin_supports(matmul)) return false;
  for (int input : {form.b, form.bias})
    if (input >= 0 && graph.producer(node.inputs[size_t(input)]) >= 0) return false;
  int64_t awaited = 0;
  std::optional<DType> dtype;
  if (form.prologue)
    for (int input : form.prologue->inputs) {
      ValueId value = node.inputs[size_t(input)];
      if (graph.producer(value) < 0) continue;
      const ValueType& type = graph.type(value);
      if (num_elements(type.shape) != form.m * form.k || form.k * dtype_bytes(type.dtype) % 16 != 0) return false;
      if (*(dtype ? dtype : dtype = type.dtype) != type.dtype) return false;
      awaited += num_bytes(type);
    }
  return shared_bytes(form, shape_of(matmul.problem)) + awaited <= kStaticBytes;
}

std::string thin_matmul_source(const MatmulNode& node, const KernelStart& start) {
  const MatmulProblem& p = node.problem;
  Shape shape = shape_of(p);
  std::string function = node.form.function ? function_source(*node.form.function)
                                            : "__device__ inline float finish(float x, float) { return x; }\n";
  std::string form =
      p.trans_b ? fmt::format("constexpr int kWarpRows = {}, kResident = {};\n", shape.rows_per_warp, kResident)
                : fmt::format("constexpr int kColumns = {}, kMostAhead = {};\nconstexpr bool kTensor = {};\n",
                              shape.columns, shape.ahead, takes_tensor_cores(p.a));
  std::string_view kernel =
      p.trans_b ? "backend/cuda/kernels/matmul_thin_rows.cu" : "backend/cuda/kernels/matmul_thin_columns.cu";
  return fmt::format(
             "#include \"backend/cuda/kernels/chain.cuh\"\n#include \"backend/cuda/kernels/group.cuh\"\n"
             "namespace tokamak {{\nusing Element = {};\nusing Output = {};\n"
             "constexpr int kM = {}, kN = {}, kK = {}, kThreads = {};\n"
             "constexpr bool kBias = {}, kAddend = {}, kFunction = {}, kPrologue = {}, kEarly = {}, kLinked = {},\n"
             "    kAwaits = {}, kAwaitsGiven = {}, kAwaitsAddend = {};\n{}{}{}}}\n",
             device_type(storage_of(p.a)), device_type(p.output), p.m, p.n, p.k, shape.threads, node.form.bias >= 0,
             node.form.addend >= 0, node.form.function.has_value(), node.form.prologue.has_value(), start.early,
             start.link != nullptr, start.awaits(), is_awaited(start, node.form.a), is_awaited(start, node.form.addend),
             form, function, row_text(node, shape, start)) +
         std::string(embedded_source(kernel));
}

KernelPtr make_thin_matmul(Context& context, const MatmulNode& node, const KernelStart& start) {
  return std::make_unique<ThinMatmulKernel>(context, node, start);
}

}  // namespace tokamak::cuda
