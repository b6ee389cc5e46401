#include "advise/zero_cut.h"

namespace tokamak {
namespace {

// Cuts the first dim that the axis divides.
bool cut_first(MatrixSize& size, int64_t ranks) {
  if (ranks == 1) return false;
  if (size.rows % ranks == 0) return size.rows /= ranks, true;
  if (size.columns % (size.blocks * ranks) == 0) return size.columns /= ranks, true;
  return false;
}

}  // namespace

void ZeroCut::add(const MatrixSize& parameter, const MeshConfig& mesh) {
  data_ranks = double(mesh.data), context_ranks = double(mesh.context);
  MatrixSize left = parameter;
  bool data = cut_first(left, mesh.data), context = cut_first(left, mesh.context);
  (data && context ? by_both : data ? by_data : context ? by_context : whole) += parameter.elements();
}

ZeroCut operator*(double times, ZeroCut sizes) {
  for (double* size : {&sizes.whole, &sizes.by_data, &sizes.by_context, &sizes.by_both}) *size *= times;
  return sizes;
}

ZeroCut operator+(ZeroCut a, const ZeroCut& b) {
  a.whole += b.whole, a.by_data += b.by_data, a.by_context += b.by_context, a.by_both += b.by_both;
  return a;
}

std::vector<MatrixSize> block_matrices(const ModelConfig& model, int64_t tensor) {
  int64_t C = model.width, blocks = tensor > 1 ? 3 : 1;
  return {{C, 3 * C / tensor, blocks}, {C / tensor, C}, {C, 4 * C / tensor}, {4 * C / tensor, C}};
}

std::vector<MatrixSize> block_vectors(const ModelConfig& model, int64_t tensor) {
  int64_t C = model.width, blocks = tensor > 1 ? 3 : 1;
  if (!model.bias) return {{C}, {C}};
  return {{C}, {C}, {C}, {C}, {1, 3 * C / tensor, blocks}, {C}, {4 * C / tensor}, {C}};
}

}  // namespace tokamak
