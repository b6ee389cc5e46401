#include "backend/cuda/codegen/flat.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/device_types.h"
#include "base/divide.h"
#include "ops/generate.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256;

// Whether the matrix can be worked on as one line: nothing varies along one of its two sides only.
bool is_line(const GroupBody& body) {
  if (body.rows == 1 || body.cols == 1) return true;
  for (const GroupValue& v : body.values)
    if (v.along_rows != v.along_cols || v.is(op::iota)) return false;
  return true;
}

class FlatWriter {
 public:
  explicit FlatWriter(const GroupBody& body)
      : body_(body), line_(is_line(body)), expression_(body, line_),
        vector_(vector_length(line_ ? body.size() : body.cols, 16 / narrowest_bytes(body))) {
    int64_t loads = 0;
    for (const GroupValue& v : body.values) loads += is_streamed(v);
    per_thread_ = loads <= 2 ? 2 : 1;
  }

  GroupCode run() {
    text_.line("constexpr Index kVectors = {};  // of all elements", vectors());
    text_.line(
        "constexpr int kThreads = {}, kPerThread = {};  // vectors of a thread, whose loads are under way together",
        kThreads, per_thread_);
    text_.blank();
    text_.open("extern \"C\" __global__ void __launch_bounds__(kThreads) flat_group({})", parameters(body_, true));
    text_.line("begin_kernel();");
    write_scalars();
    text_.line("const Index first = Index(blockIdx.x) * (kThreads * kPerThread) + threadIdx.x;");
    write_loads();
    write_work();
    text_.close();
    GroupLaunch launch{.function = "flat_group", .threads_x = kThreads};
    int64_t per_block = int64_t(kThreads) * per_thread_;
    launch.blocks_x = ceil_div(vectors(), per_block);
    return {prelude(body_, vector_, line_ ? "as one line" : "vectors within a row") + text_.str(), {launch}, 0};
  }

 private:
  int64_t vectors() const { return body_.size() / vector_; }
  bool is_streamed(const GroupValue& v) const { return v.is_input() && body_.size() > 1 && body_.is_full(v); }

  void write_scalars() {
    for (size_t v = 0; v < body_.values.size(); ++v)
      if (expression_.level(int(v)) == Level::kScalar) write_single(int(v));
  }
  void write_single(int v) { text_.line("{}", expression_.definition(v)); }

  void write_loads() {
    for (size_t v = 0; v < body_.values.size(); ++v)
      if (const GroupValue& value = body_.values[v]; is_streamed(value))
        text_.line("Packed<{}, kVector> x{}[kPerThread];", device_type(value.dtype), v);
    text_.unroll();
    text_.open("for (int k = 0; k < kPerThread; ++k)");
    text_.line("const Index at = first + Index(k) * kThreads;");
    text_.line("if (at >= kVectors) continue;");
    for (size_t v = 0; v < body_.values.size(); ++v)
      if (const GroupValue& value = body_.values[v]; is_streamed(value))
        text_.line("x{}[k] = load_packed<kVector>(a{} + at * kVector);", v, value.outer);
    text_.close();
  }

  void write_position() {
    text_.line("const Index at = first + Index(k) * kThreads;");
    text_.line("if (at >= kVectors) continue;");
    if (line_) return text_.line("const Index column = at * kVector;");
    text_.line("constexpr Index kRowVectors = kCols / kVector;");
    text_.line("const Index row = at / kRowVectors, column = at % kRowVectors * kVector;");
  }

  void write_work() {
    text_.unroll();
    text_.open("for (int k = 0; k < kPerThread; ++k)");
    write_position();
    for (size_t v = 0; v < body_.values.size(); ++v) {
      const GroupValue& value = body_.values[v];
      if (expression_.level(int(v)) == Level::kRow) write_single(int(v));
      if (value.is_input() && expression_.level(int(v)) == Level::kTile && !is_streamed(value))
        text_.line("const auto x{} = load_packed<kVector>(a{} + {});", v, value.outer, expression_.place(int(v)));
    }
    write_elements();
    for (size_t r = 0; r < body_.results.size(); ++r)
      text_.line("store_vector<kVector>(r{0} + at * kVector, y{0});", r);
    text_.close();
  }

  void write_elements() {
    VectorCode code;
    for (size_t v = 0; v < body_.values.size(); ++v) code.values.push_back(int(v));
    code.source = [&](int v) -> std::string {
      const GroupValue& value = body_.values[size_t(v)];
      if (!value.is_input()) return "";
      return is_streamed(value) ? fmt::format("x{}[k][i]", v) : fmt::format("x{}[i]", v);
    };
    for (size_t r = 0; r < body_.results.size(); ++r) {
      text_.line("float y{}[kVector];", r);
      code.actions.push_back(fmt::format("y{}[i] = {};", r, expression_.stored(body_.results[r])));
    }
    write_vector(text_, body_, expression_, code);
  }

  const GroupBody& body_;
  bool line_;
  Expression expression_;
  int vector_;
  int per_thread_ = 1;
  Text text_;
};

}  // namespace

GroupCode generate_flat(const GroupBody& body) { return FlatWriter(body).run(); }

}  // namespace tokamak::cuda
