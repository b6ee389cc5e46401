#include "backend/cuda/strided_copy.h"

#include "base/divide.h"
#include "base/error.h"

#include <algorithm>
#include <numeric>

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256, kUnitsPerThread = 4;  // as kernels/strided_copy.cu
constexpr int kTile = 32, kTileRows = 8;            // as kernels/transpose.cu
constexpr int kWideBytes = 128, kPieceBytes = 16;   // a side of a tile, as kernels/transpose_wide.cu

// A tensor around one of its dims: (outer, size, inner).
struct Around {
  int64_t outer = 1, size, inner = 1;
};
Around around(const Shape& shape, int64_t dim) {
  Around a{1, shape[size_t(dim)], 1};
  for (size_t d = 0; d < size_t(dim); ++d) a.outer *= shape[d];
  for (size_t d = size_t(dim) + 1; d < shape.size(); ++d) a.inner *= shape[d];
  return a;
}

// Runs of `run` elements, one in every row of the input and one in every row of the output.
StridedCopy copy_rows(const Graph& graph, const Node& node, int64_t rows, int64_t from_row, int64_t to_row,
                      int64_t run) {
  StridedCopy copy;
  copy.element_bytes = dtype_bytes(graph.dtype(node.outputs[0]));
  copy.dims = {{rows, from_row, to_row}, {run, 1, 1}};
  return copy;
}

const char* unit_type(int64_t bytes) {
  switch (bytes) {
    case 16: return "uint4";
    case 8: return "uint2";
    case 4: return "uint32_t";
    case 2: return "uint16_t";
    default: return "uint8_t";
  }
}

// Elements in the widest unit that everything is a multiple of.
int64_t unit_elements(const StridedCopy& copy) {
  int64_t common = 16 / copy.element_bytes;
  auto divide = [&](int64_t value) { common = std::gcd(common, value); };
  divide(copy.from_offset);
  divide(copy.to_offset);
  divide(copy.dims.back().size);
  divide(copy.inside_begin);
  if (copy.inside_end != INT64_MAX) divide(copy.inside_end);
  for (size_t d = 0; d + 1 < copy.dims.size(); ++d) {
    divide(copy.dims[d].from_stride);
    divide(copy.dims[d].to_stride);
  }
  return common;
}

StridedCopy in_units(StridedCopy copy, int64_t elements) {
  copy.element_bytes *= elements;
  copy.from_offset /= elements;
  copy.to_offset /= elements;
  copy.inside_begin /= elements;
  if (copy.inside_end != INT64_MAX) copy.inside_end /= elements;
  copy.dims.back().size /= elements;
  for (size_t d = 0; d + 1 < copy.dims.size(); ++d) {
    copy.dims[d].from_stride /= elements;
    copy.dims[d].to_stride /= elements;
  }
  return copy;
}

int64_t count(const std::vector<CopyDim>& dims) {
  int64_t n = 1;
  for (const CopyDim& dim : dims) n *= dim.size;
  return n;
}

// Types, and place_of(i): where element i of the loops over `dims` lies. Every number is a constant, so that divisions
// become multiplications.
std::string place_source(const StridedCopy& copy, const std::vector<CopyDim>& dims) {
  int64_t reach = copy.from_offset + copy.to_offset + kThreads * kUnitsPerThread;
  for (const CopyDim& dim : copy.dims) reach += dim.size * std::max({dim.from_stride, dim.to_stride, int64_t(1)});
  bool wide = std::max(reach, count(copy.dims)) > INT32_MAX;
  std::string text = fmt::format(
      "#include \"backend/cuda/kernels/std.cuh\"\nusing Unit = {};\nusing Index = {};\n"
      "struct Place {{ Index from, to; bool inside; }};\n"
      "__device__ inline Place place_of(Index i) {{\n  Index from = {}, to = {}, j = 0;\n  bool inside = true;\n",
      unit_type(copy.element_bytes), wide ? "uint64_t" : "uint32_t", copy.from_offset, copy.to_offset);
  bool partly = copy.inside_begin > 0 || copy.inside_end != INT64_MAX;
  for (size_t d = dims.size(); d-- > 0;) {
    const CopyDim& dim = dims[d];
    text += d == 0 ? "  j = i;\n" : fmt::format("  j = i % Index({0});\n  i /= Index({0});\n", dim.size);
    // From the first element inside; unsigned arithmetic makes up for what lies before it.
    int64_t begin = partly && d + 1 == dims.size() ? copy.inside_begin : 0;
    if (partly && d + 1 == dims.size())
      text += fmt::format("  inside = j >= Index({}) && j < Index({});\n", begin, std::min(copy.inside_end, dim.size));
    text += fmt::format("  from += (j - Index({})) * Index({});\n  to += j * Index({});\n", begin, dim.from_stride,
                        dim.to_stride);
  }
  return text + "  return {from, to, inside};\n}\n";
}

CopyKernel units_kernel(const StridedCopy& elements) {
  StridedCopy copy = in_units(elements, unit_elements(elements));
  int64_t units = count(copy.dims), per_block = kThreads * kUnitsPerThread;
  std::string source = place_source(copy, copy.dims) + fmt::format("constexpr Index kUnits = {};\n", units) +
                       "#include \"backend/cuda/kernels/strided_copy.cu\"\n";
  return {"strided_copy", source, {dim3(unsigned(ceil_div(units, per_block))), dim3(kThreads), 0}};
}

// Whether every line begins and ends at a multiple of 16 bytes, in the input and in the output.
bool has_whole_pieces(const StridedCopy& copy, size_t lines) {
  int64_t piece = kPieceBytes / copy.element_bytes;
  bool whole = copy.from_offset % piece == 0 && copy.to_offset % piece == 0;
  for (size_t d = 0; d < copy.dims.size(); ++d) {
    const CopyDim& dim = copy.dims[d];
    bool last = d + 1 == copy.dims.size();
    whole &= d == lines ? dim.size % piece == 0 : dim.from_stride % piece == 0;
    whole &= last ? dim.size % piece == 0 : dim.to_stride % piece == 0;
  }
  return whole;
}

// `lines`: the dim along which the input runs.
CopyKernel tiles_kernel(const StridedCopy& copy, size_t lines) {
  std::vector<CopyDim> batch(copy.dims.begin(), copy.dims.end() - 1);
  batch.erase(batch.begin() + int64_t(lines));
  const CopyDim &line = copy.dims[lines], &element = copy.dims.back();
  bool wide = has_whole_pieces(copy, lines);
  int64_t side = wide ? kWideBytes / copy.element_bytes : kTile;
  int64_t down = ceil_div(line.size, side), across = ceil_div(element.size, side);
  std::string name = wide ? "transpose_wide" : "transpose", source = place_source(copy, batch);
  source += fmt::format(
      "constexpr Index kLines = {}, kElements = {}, kFromStride = {}, kToStride = {}, kTilesDown = {}, "
      "kTilesAcross = {};\n",
      line.size, element.size, element.from_stride, line.to_stride, down, across);
  source += fmt::format("#include \"backend/cuda/kernels/{}.cu\"\n", name);
  return {
      name, source, {dim3(unsigned(down * across * count(batch))), wide ? dim3(kThreads) : dim3(kTile, kTileRows), 0}};
}

}  // namespace

StridedCopy transpose_copy(const Graph& graph, const Node& node) {
  const Shape& from = graph.shape(node.inputs[0]);
  std::vector<int64_t> strides(from.size(), 1);
  for (size_t d = from.size(); d-- > 1;) strides[d - 1] = strides[d] * from[d];
  StridedCopy copy;
  copy.element_bytes = dtype_bytes(graph.dtype(node.outputs[0]));
  for (int64_t p : node.attrs.get_ints("perm")) copy.dims.push_back({from[size_t(p)], strides[size_t(p)], 1});
  for (size_t d = copy.dims.size(); d-- > 1;) copy.dims[d - 1].to_stride = copy.dims[d].to_stride * copy.dims[d].size;
  return copy;
}

StridedCopy slice_copy(const Graph& graph, const Node& node) {
  int64_t dim = node.attrs.get_int("dim");
  Around from = around(graph.shape(node.inputs[0]), dim), to = around(graph.shape(node.outputs[0]), dim);
  int64_t run = to.size * to.inner;
  StridedCopy copy = copy_rows(graph, node, to.outer, from.size * from.inner, run, run);
  copy.from_offset = node.attrs.get_int("begin") * from.inner;
  return copy;
}

StridedCopy pad_copy(const Graph& graph, const Node& node) {
  TOKAMAK_CHECK(!node.attrs.find("parts"), "pad of several parts on one rank");
  int64_t dim = node.attrs.get_int("dim");
  Around from = around(graph.shape(node.inputs[0]), dim), to = around(graph.shape(node.outputs[0]), dim);
  int64_t run = to.size * to.inner;
  StridedCopy copy = copy_rows(graph, node, to.outer, from.size * from.inner, run, run);
  copy.inside_begin = node.attrs.get_int("before") * to.inner;
  copy.inside_end = copy.inside_begin + from.size * from.inner;
  return copy;
}

StridedCopy concat_copy(const Graph& graph, const Node& node, size_t input, int64_t at) {
  int64_t dim = node.attrs.get_int("dim");
  Around from = around(graph.shape(node.inputs[input]), dim), to = around(graph.shape(node.outputs[0]), dim);
  int64_t run = from.size * from.inner;
  StridedCopy copy = copy_rows(graph, node, from.outer, run, to.size * to.inner, run);
  copy.to_offset = at * to.inner;
  return copy;
}

StridedCopy merge_dims(StridedCopy copy) {
  bool partly = copy.inside_begin > 0 || copy.inside_end != INT64_MAX;
  std::vector<CopyDim> merged;
  for (size_t d = 0; d < copy.dims.size(); ++d) {
    const CopyDim& dim = copy.dims[d];
    bool last = d + 1 == copy.dims.size();
    if (dim.size == 1 && !(partly && last)) continue;
    CopyDim* outer = merged.empty() || (partly && last) ? nullptr : &merged.back();
    if (outer && outer->from_stride == dim.size * dim.from_stride && outer->to_stride == dim.size * dim.to_stride)
      *outer = {outer->size * dim.size, dim.from_stride, dim.to_stride};
    else
      merged.push_back(dim);
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  copy.dims = std::move(merged);
  return copy;
}

CopyKernel make_copy_kernel(const StridedCopy& given) {
  StridedCopy copy = merge_dims(given);
  if (copy.dims.back().from_stride != 1)
    for (size_t d = 0; d + 1 < copy.dims.size(); ++d)
      if (copy.dims[d].from_stride == 1 && copy.dims.back().to_stride == 1) return tiles_kernel(copy, d);
  if (copy.dims.back().from_stride != 1 || copy.dims.back().to_stride != 1) copy.dims.push_back({1, 1, 1});
  return units_kernel(copy);
}

}  // namespace tokamak::cuda
