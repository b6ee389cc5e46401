#include "backend/cuda/codegen/column.h"

#include "backend/cuda/codegen/combine.h"
#include "backend/cuda/codegen/expression.h"
#include "base/divide.h"

#include <algorithm>
#include <bit>

namespace tokamak::cuda {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kFewRows = 32;  // that one thread adds up alone
constexpr int64_t kBlocks = 792;  // enough for the largest GPUs
constexpr int64_t kRowsEach = 4;  // of a thread, at least

// A block is kAcross threads along the columns and kDown along the rows.
struct ColumnPlan {
  int vector = 1;
  int64_t across = 1, down = 1;
  int64_t tiles = 1;   // blocks along the columns
  int64_t ranges = 1;  // blocks along the rows
};

ColumnPlan plan_columns(const GroupBody& body) {
  ColumnPlan plan;
  plan.vector = vector_length(body.cols, 16 / narrowest_bytes(body));
  int64_t vectors = body.cols / plan.vector;
  bool few = body.rows <= kFewRows;
  plan.across = std::min<int64_t>(few ? kThreads : 32, int64_t(std::bit_ceil(uint64_t(vectors))));
  plan.down = few ? 1 : kThreads / plan.across;
  plan.tiles = ceil_div(vectors, plan.across);
  if (!few) plan.ranges = std::clamp<int64_t>(kBlocks / plan.tiles, 1, ceil_div(body.rows, plan.down * kRowsEach));
  return plan;
}

class ColumnWriter {
 public:
  explicit ColumnWriter(const GroupBody& body) : body_(body), expression_(body), plan_(plan_columns(body)) {
    for (size_t v = 0; v < body.values.size(); ++v)
      if (body.values[v].reduces_rows()) sums_.push_back(int(v));
  }

  GroupCode run() {
    write_constants();
    text_.open("extern \"C\" __global__ void __launch_bounds__(kAcross * kDown) column_group({})", parameters(body_));
    text_.line("begin_kernel();");
    text_.line("const int x = int(threadIdx.x), y = int(threadIdx.y);");
    text_.line("const Index column = (Index(blockIdx.x) * kAcross + x) * kVector;");
    for (size_t v = 0; v < body_.values.size(); ++v)
      if (expression_.level(int(v)) == Level::kScalar && !body_.values[v].is_reduction()) write_single(int(v));
    for (int v : sums_) {
      text_.line("float total{}[kVector];  // {}", v, body_.values[size_t(v)].op->name);
      text_.line("for (int i = 0; i < kVector; ++i) total{}[i] = {}::start();", v,
                 combine_name(body_.values[size_t(v)]));
    }
    write_rows();
    write_totals();
    text_.close();
    GroupLaunch launch{.function = "column_group", .blocks_x = plan_.tiles, .blocks_y = plan_.ranges};
    launch.threads_x = int(plan_.across);
    launch.threads_y = int(plan_.down);
    GroupCode code{
        prelude(body_, plan_.vector, fmt::format("{} ranges of rows", plan_.ranges)) + text_.str(), {launch}, 0};
    if (plan_.ranges > 1) add_combine(code, body_, sums_, plan_.ranges);
    return code;
  }

 private:
  void write_constants() {
    text_.line("constexpr int kAcross = {}, kDown = {};  // threads of a block along columns and rows", plan_.across,
               plan_.down);
    text_.line("constexpr int kBlocks = {}, kSums = {};  // ranges of rows; reductions", plan_.ranges, sums_.size());
    text_.blank();
  }

  void write_single(int v) { text_.line("{}", expression_.definition(v)); }

  // Vectors of arguments that vary along the rows, or that do not.
  void write_vectors(bool along_rows) {
    for (size_t v = 0; v < body_.values.size(); ++v) {
      const GroupValue& value = body_.values[v];
      if (value.is_input() && expression_.level(int(v)) == Level::kTile && value.along_rows == along_rows)
        text_.line("const auto x{} = load_packed<kVector>(a{} + {});", v, value.outer, expression_.place(int(v)));
    }
  }

  void write_rows() {
    text_.open("if (column < kCols)");
    write_vectors(false);
    text_.line(
        "const Index begin = uint64_t(kRows) * blockIdx.y / kBlocks, end = uint64_t(kRows) * (blockIdx.y + 1) / "
        "kBlocks;");
    text_.line("#pragma unroll 4");
    text_.open("for (Index row = begin + y; row < end; row += kDown)");
    for (size_t v = 0; v < body_.values.size(); ++v)
      if (expression_.level(int(v)) == Level::kRow && !body_.values[v].is_reduction()) write_single(int(v));
    write_vectors(true);
    write_elements();
    text_.close();
    text_.close();
  }

  void write_elements() {
    VectorCode code;
    for (size_t v = 0; v < body_.values.size(); ++v)
      if (!body_.values[v].is_reduction()) code.values.push_back(int(v));
    code.source = [&](int v) { return body_.values[size_t(v)].is_input() ? fmt::format("x{}[i]", v) : std::string(); };
    std::vector<size_t> full;
    for (size_t r = 0; r < body_.results.size(); ++r)
      if (!body_.values[size_t(body_.results[r].value)].is_reduction()) full.push_back(r);
    for (size_t r : full) {
      text_.line("float y{}[kVector];", r);
      code.actions.push_back(fmt::format("y{}[i] = {};", r, expression_.stored(body_.results[r])));
    }
    for (int v : sums_)
      code.actions.push_back(fmt::format("total{0}[i] = {1}::combine(total{0}[i], {2});", v,
                                         combine_name(body_.values[size_t(v)]),
                                         expression_.name(body_.values[size_t(v)].operands[0])));
    write_vector(text_, body_, expression_, code);
    for (size_t r : full) text_.line("store_vector<kVector>(r{0} + row * kCols + column, y{0});", r);
  }

  void write_totals() {
    if (plan_.down > 1) {
      text_.line("__shared__ float scratch[kAcross * kDown * kVector];");
      for (int v : sums_)
        text_.line("combine_down<{}, kAcross, kDown, kVector>(total{}, x, y, scratch);",
                   combine_name(body_.values[size_t(v)]), v);
    }
    text_.line("if (y > 0 || column >= kCols) return;");
    for (size_t s = 0; s < sums_.size(); ++s) {
      if (plan_.ranges > 1)
        text_.line("store_vector<kVector>(partial + (int64_t(blockIdx.y) * kSums + {}) * kCols + column, total{});", s,
                   sums_[s]);
      else
        for (int r : results_of(body_, sums_[s]))
          text_.line("store_vector<kVector>(r{} + column, total{});", r, sums_[s]);
    }
  }

  const GroupBody& body_;
  Expression expression_;
  ColumnPlan plan_;
  std::vector<int> sums_;
  Text text_;
};

}  // namespace

GroupCode generate_column(const GroupBody& body) { return ColumnWriter(body).run(); }

int64_t column_workspace_bytes(const GroupBody& body) {
  int64_t ranges = plan_columns(body).ranges;
  return ranges > 1 ? partial_bytes(body, ranges) : 0;
}

}  // namespace tokamak::cuda
