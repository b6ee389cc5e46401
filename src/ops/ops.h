// Builders of all ops: what models, gradients and passes write graphs with. One declaration per op, its record beside
// it in namespace op; the records' files hold the shape rule, gradient, reference and cost.
#pragma once

#include "graph/builder.h"

namespace tokamak {

namespace op {
extern const OpDef add, sub, mul, div, maximum, minimum, pow, less, equal, select;
extern const OpDef neg, exp, log, tanh, sqrt, rsqrt, gelu, gelu_grad, cast;
extern const OpDef constant, iota, random_uniform;
extern const OpDef reduce_sum, reduce_max, sum_squares;
extern const OpDef reshape, transpose, slice, pad, concat;
extern const OpDef matmul, embedding, embedding_grad;
extern const OpDef softmax, softmax_grad, layer_norm, layer_norm_grad, layer_norm_grad_params, dropout;
extern const OpDef cross_entropy, cross_entropy_grad, classifier;
extern const OpDef attention, attention_grad, attention_decode;
extern const OpDef adamw, multi_adamw;
extern const OpDef multi_cast;
extern const OpDef group;
}  // namespace op

// Pointwise, with numpy broadcasting. Comparisons give 1 or 0.
ValueId add(GraphBuilder& g, ValueId a, ValueId b);
ValueId sub(GraphBuilder& g, ValueId a, ValueId b);
ValueId mul(GraphBuilder& g, ValueId a, ValueId b);
ValueId div(GraphBuilder& g, ValueId a, ValueId b);
ValueId maximum(GraphBuilder& g, ValueId a, ValueId b);
ValueId minimum(GraphBuilder& g, ValueId a, ValueId b);
ValueId pow(GraphBuilder& g, ValueId a, ValueId b);
ValueId less(GraphBuilder& g, ValueId a, ValueId b);
ValueId equal(GraphBuilder& g, ValueId a, ValueId b);
ValueId select(GraphBuilder& g, ValueId condition, ValueId a, ValueId b);
ValueId neg(GraphBuilder& g, ValueId a);
ValueId exp(GraphBuilder& g, ValueId a);
ValueId log(GraphBuilder& g, ValueId a);
ValueId tanh(GraphBuilder& g, ValueId a);
ValueId sqrt(GraphBuilder& g, ValueId a);
ValueId rsqrt(GraphBuilder& g, ValueId a);
ValueId gelu(GraphBuilder& g, ValueId a);
ValueId cast(GraphBuilder& g, ValueId a, DType to);  // returns `a` itself when it has that type
/// All values in this float type, in one node.
std::vector<ValueId> multi_cast(GraphBuilder& g, std::vector<ValueId> values, DType to);

// Generators.
ValueId constant(GraphBuilder& g, double value, Shape shape = {}, DType dtype = DType::kF32);
ValueId iota(GraphBuilder& g, Shape shape, int64_t dim, int64_t period = 0);  // f32 index along dim, modulo the period
/// Uniform in [0, 1); rng is i32[2] = (seed, step); `stream` tells tensors of one step apart.
ValueId random_uniform(GraphBuilder& g, ValueId rng, Shape shape, int64_t stream);

// Reductions over `dims`; `keep` leaves them as dims of size 1.
ValueId reduce_sum(GraphBuilder& g, ValueId a, std::vector<int64_t> dims, bool keep);
ValueId reduce_max(GraphBuilder& g, ValueId a, std::vector<int64_t> dims, bool keep);
/// f32[]: the sum of squares of all elements of all values.
ValueId sum_squares(GraphBuilder& g, std::vector<ValueId> values);

// Shape and movement.
ValueId reshape(GraphBuilder& g, ValueId a, Shape shape);  // one dim may be -1; returns `a` when nothing changes
ValueId transpose(GraphBuilder& g, ValueId a, std::vector<int64_t> perm);
ValueId slice(GraphBuilder& g, ValueId a, int64_t dim, int64_t begin, int64_t size);
ValueId pad(GraphBuilder& g, ValueId a, int64_t dim, int64_t before, int64_t after);  // with zeros
ValueId concat(GraphBuilder& g, std::vector<ValueId> values, int64_t dim);

/// op(a) (..., M, K) times op(b) (K, N) or (..., K, N) -> (..., M, N).
ValueId matmul(GraphBuilder& g, ValueId a, ValueId b, bool trans_a = false, bool trans_b = false);
ValueId embedding(GraphBuilder& g, ValueId table, ValueId ids);  // (V, C), (...) -> (..., C)

ValueId softmax(GraphBuilder& g, ValueId x);  // along the last dim
/// y = (x - mean) * rstd * gain (+ bias), along the last dim; bias may be kNoValue.
ValueId layer_norm(GraphBuilder& g, ValueId x, ValueId gain, ValueId bias, double eps);
ValueId dropout(GraphBuilder& g, ValueId x, ValueId rng, double p, int64_t stream);
/// (R, V), i32 (R) -> (R): -log softmax(logits)[target] over the first `classes` columns.
ValueId cross_entropy(GraphBuilder& g, ValueId logits, ValueId targets, int64_t classes);

struct AttentionOptions {
  int64_t heads = 1;
  bool causal = true;
  double scale = 1;
  double dropout = 0;  // of the probabilities; then rng must be given
  int64_t stream = 0;
};
/// Packed projection qkv (B, T, 3C), q|k|v each heads x D -> (B, T, C). With documents i32 (B, T), which gives for each
/// position the first one of its document, a position attends to its own document alone.
ValueId attention(GraphBuilder& g, ValueId qkv, const AttentionOptions& options, ValueId rng = kNoValue,
                  ValueId documents = kNoValue);
/// For generation: qkv (B, t, 3C) of the next t tokens, cache (B, Tmax, 2C), position i32[] -> out (B, t, C), new
/// cache.
std::pair<ValueId, ValueId> attention_decode(GraphBuilder& g, ValueId qkv, ValueId cache, ValueId position,
                                             int64_t heads, double scale);

}  // namespace tokamak
