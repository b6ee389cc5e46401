// Matmul by oneDNN's matmul primitive; the workspace is its scratchpad. Large products of bf16 on AMX are our own
// (backend/cpu/tiled_matmul.h): 1.3 to 1.9 times as fast as oneDNN 2.6's. Where the CPU has no product of bf16 (without
// AVX-512) operands become f32 first, in the workspace: right, though not fast.
#include "backend/cpu/matmul/onednn_pieces.h"

#include "backend/cpu/convert.h"
#include "backend/cpu/tiled_matmul.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/parallel.h"

#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

namespace tokamak::cpu {
namespace {

using dnnl::memory;

bool cpu_has_bf16() {
  static const bool has = [] {
    MatmulShape any{.m = 16, .n = 16, .k = 16};
    try {
      describe_matmul(any.filled(), {DType::kBF16, DType::kBF16, DType::kF32}, false, dnnl_cpu_engine());
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return has;
}

// A product of bf16 as one of f32: elements from the first to the last of each operand, which lie in the workspace
// behind the scratchpad as they lie in memory. `c`: 0 where it is f32 anyway.
struct Widened {
  int64_t a = 0, b = 0, c = 0;

  Widened(const MatmulShape& s, const MatmulOptions& o) {
    if (o.a != DType::kBF16 || cpu_has_bf16()) return;
    a = (s.batch - 1) * s.stride_a + ((s.trans_a ? s.k : s.m) - 1) * s.lda + (s.trans_a ? s.m : s.k);
    b = (s.batch - 1) * s.stride_b + ((s.trans_b ? s.n : s.k) - 1) * s.ldb + (s.trans_b ? s.k : s.n);
    if (o.output == DType::kBF16) c = (s.batch - 1) * s.stride_c + (s.m - 1) * s.ldc + s.n;
  }
  bool any() const { return a > 0; }
  MatmulOptions options(const MatmulOptions& asked) const { return any() ? MatmulOptions() : asked; }
  static int64_t place(int64_t floats) { return round_up(floats * int64_t(sizeof(float)), kPlaceBytes); }
  size_t bytes(size_t scratchpad) const {
    if (!any()) return scratchpad;
    return size_t(round_up(int64_t(scratchpad), kPlaceBytes) + place(a) + place(b) + place(c));
  }

  static constexpr int64_t kPlaceBytes = 64;
};

void widen(const void* from, int64_t count, float* to) {
  constexpr int64_t kAtOnce = 1 << 14;
  parallel_for(count, kAtOnce,
               [&](int64_t begin, int64_t end, int) { load(DType::kBF16, from, begin, end - begin, to + begin); });
}

// The library's product.
struct DnnlProduct {
  MatmulShape shape;
  Widened widened;
  MatmulOptions options;  // of the primitives
  MatmulPieces pieces;
  std::vector<dnnl::matmul> primitives;  // by kind of piece

  DnnlProduct(const MatmulShape& s, const MatmulOptions& asked)
      : shape(s), widened(s, asked), options(widened.options(asked)), pieces(shape, options),
        primitives(pieces.kinds.begin(), pieces.kinds.end()) {}

  size_t workspace_bytes() const { return widened.bytes(pieces.scratchpad_bytes()); }
  void run(const void* a, const void* b, void* c, void* workspace) const {
    widened.any() ? run_widened(a, b, c, workspace) : run_pieces(a, b, c, workspace);
  }
  void run_pieces(const void* a, const void* b, void* c, void* workspace) const;
  void run_widened(const void* a, const void* b, void* c, void* workspace) const;
  void run_piece(const MatmulPiece& piece, const void* a, const void* b, void* c, void* scratchpad) const;
};

// Empty: the library's.
std::optional<TiledMatmul> tiled(const MatmulShape& shape, const MatmulOptions& options) {
  const TileUnits* units = amx_units();
  if (units == nullptr || !TiledMatmul::is_for(shape, options)) return std::nullopt;
  return TiledMatmul(*units, shape, options.output);
}

void DnnlProduct::run_widened(const void* a, const void* b, void* c, void* workspace) const {
  char* at = static_cast<char*>(workspace) + round_up(int64_t(pieces.scratchpad_bytes()), Widened::kPlaceBytes);
  auto take = [&](int64_t floats) {
    auto* taken = reinterpret_cast<float*>(at);
    at += Widened::place(floats);
    return taken;
  };
  float *wide_a = take(widened.a), *wide_b = take(widened.b), *wide_c = take(widened.c);
  widen(a, widened.a, wide_a);
  widen(b, widened.b, wide_b);
  if (widened.c == 0) return run_pieces(wide_a, wide_b, c, workspace);
  run_pieces(wide_a, wide_b, wide_c, workspace);
  parallel_for(shape.batch * shape.m, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t first = row / shape.m * shape.stride_c + row % shape.m * shape.ldc;
      store(DType::kBF16, wide_c + first, shape.n, c, first);
    }
  });
}

void DnnlProduct::run_piece(const MatmulPiece& piece, const void* a, const void* b, void* c, void* scratchpad) const {
  const dnnl::matmul::primitive_desc& desc = pieces.kinds[piece.kind];
  const dnnl::engine& engine = pieces.engine;
  // oneDNN takes pointers to non-const also for what it only reads.
  auto at = [&](const memory::desc& what, const void* data, int64_t elements, DType dtype) {
    return memory(what, engine, static_cast<char*>(const_cast<void*>(data)) + elements * dtype_bytes(dtype));
  };
  dnnl::stream stream(engine);
  std::unordered_map<int, memory> args{{DNNL_ARG_SRC, at(desc.src_desc(), a, piece.a, options.a)},
                                       {DNNL_ARG_WEIGHTS, at(desc.weights_desc(), b, piece.b, options.b)},
                                       {DNNL_ARG_DST, at(desc.dst_desc(), c, piece.c, options.output)},
                                       {DNNL_ARG_SCRATCHPAD, memory(desc.scratchpad_desc(), engine, scratchpad)}};
  primitives[piece.kind].execute(stream, args);
  stream.wait();
}

void DnnlProduct::run_pieces(const void* a, const void* b, void* c, void* workspace) const {
  if (!pieces.one_thread_each) {
    for (const MatmulPiece& piece : pieces.list) run_piece(piece, a, b, c, workspace);
    return;
  }
  size_t scratchpad = pieces.scratchpad_bytes_of_a_piece();
  int64_t each = int64_t(pieces.list.size());
  parallel_for(pieces.matrices * each, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      MatmulPiece piece = pieces.list[size_t(i % each)];
      int64_t matrix = i / each;
      piece.a += matrix * shape.stride_a, piece.b += matrix * shape.stride_b, piece.c += matrix * shape.stride_c;
      void* own = static_cast<char*>(workspace) + size_t(thread) * scratchpad;
      on_this_thread_only([&] { run_piece(piece, a, b, c, own); });
    }
  });
}

}  // namespace

struct Matmul::Impl {
  std::variant<TiledMatmul, DnnlProduct> product;
};

// Operands of two types have no kernel here that is worth the name.
bool Matmul::supports(const MatmulOptions& options) {
  auto is_known = [](DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; };
  return options.a == options.b && is_known(options.a) &&
         (options.output == DType::kF32 || options.output == options.a);
}

size_t Matmul::workspace_bytes(const MatmulShape& shape, const MatmulOptions& options) {
  if (auto own = tiled(shape.filled(), options)) return own->workspace_bytes(num_threads());
  try {
    Widened widened(shape.filled(), options);
    return widened.bytes(MatmulPieces(shape.filled(), widened.options(options)).scratchpad_bytes());
  } catch (const dnnl::error&) {
    return 0;  // preparing the product says what is wrong
  }
}

Matmul::Matmul(const MatmulShape& shape, const MatmulOptions& options) {
  if (auto own = tiled(shape.filled(), options)) {
    impl_ = std::make_unique<const Impl>(Impl{*own});
    return;
  }
  try {
    impl_ = std::make_unique<const Impl>(Impl{DnnlProduct(shape.filled(), options)});
  } catch (const dnnl::error& e) {
    user_error("[matmul] expected oneDNN to know ({}, {}, {}) in {}, got '{}'; try precision fp32", shape.m, shape.n,
               shape.k, dtype_name(options.a), e.what());
  }
}
Matmul::~Matmul() = default;
Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;

size_t Matmul::workspace_bytes() const {
  if (const auto* own = std::get_if<TiledMatmul>(&impl_->product)) return own->workspace_bytes(num_threads());
  return std::get<DnnlProduct>(impl_->product).workspace_bytes();
}

std::string Matmul::implementation() const {
  const auto* library = std::get_if<DnnlProduct>(&impl_->product);
  if (library == nullptr) return "tiles of bf16";
  return fmt::format("onednn {} in {} pieces{}", library->pieces.kinds[0].impl_info_str(),
                     library->pieces.matrices * int64_t(library->pieces.list.size()),
                     library->widened.any() ? ", of bf16 as f32" : "");
}

void Matmul::run(const void* a, const void* b, void* c, void* workspace) const {
  std::visit([&](const auto& product) { product.run(a, b, c, workspace); }, impl_->product);
}

}  // namespace tokamak::cpu
