// One table of cases per op family; every case goes through the same checks (harness.cpp): text round trip, reference
// against decomposition, reference against the CPU backend, gradient of all outputs against finite differences.
// coverage_test.cpp fails when an op has no case.
#pragma once

#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "graph/op_def.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace tokamak::test {

/// An input of a case: its type and the range of its random elements (integers: [low, high)).
struct CaseInput {
  ValueType type;
  double low = -1, high = 1;
  bool starts = false;  // the numbers become starts of documents, one for each number
};

inline CaseInput f32(Shape shape, double low = -1, double high = 1) {
  return {{DType::kF32, std::move(shape)}, low, high};
}
inline CaseInput bf16(Shape shape, double low = -1, double high = 1) {
  return {{DType::kBF16, std::move(shape)}, low, high};
}
inline CaseInput i32(Shape shape, double low, double high) { return {{DType::kI32, std::move(shape)}, low, high}; }
inline CaseInput rng() { return i32({2}, 0, 1e6); }
/// Of the second part of two, along two axes: seed, step and coordinates are 1.
inline CaseInput rng_of_part() { return i32({4}, 1, 2); }
/// (B, T): up to `count` documents a sample.
inline CaseInput documents(Shape shape, int64_t count) {
  return {{DType::kI32, std::move(shape)}, 0, double(count), true};
}

struct OpCase {
  std::string name;
  const OpDef* op = nullptr;
  std::vector<CaseInput> inputs;
  Attrs attrs = {};
  double cpu_tolerance = 1e-5;  // |cpu - reference| / max(1, |reference|); 0: the same bits
  std::shared_ptr<const Graph> body = nullptr;
  bool smooth = true;             // false: rounds, so that finite differences see steps
  size_t gradients = ~size_t(0);  // so many of the first outputs have one; others are kept for the gradient alone
};

/// Says of the cases of one op how many outputs have a gradient.
std::vector<OpCase> with_gradients(std::vector<OpCase> cases, const OpDef& op, size_t outputs);

/// How GoogleTest names a case.
void PrintTo(const OpCase& c, std::ostream* out);

std::vector<OpCase> adamw_cases();
std::vector<OpCase> adamw8bit_cases();
std::vector<OpCase> argmax_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> attention_decode_cases();
std::vector<OpCase> classifier_cases();
std::vector<OpCase> collective_cases();
std::vector<OpCase> context_attention_cases();
std::vector<OpCase> cross_entropy_cases();
std::vector<OpCase> dropout_cases();
std::vector<OpCase> embedding_cases();
std::vector<OpCase> first_rows_cases();
std::vector<OpCase> float8_weights_cases();
std::vector<OpCase> generate_cases();
std::vector<OpCase> group_cases();
std::vector<OpCase> matmul_cases();
std::vector<OpCase> movement_cases();
std::vector<OpCase> multi_add_cases();
std::vector<OpCase> multi_cast_cases();
std::vector<OpCase> norm_cases();
std::vector<OpCase> packed_gate_cases();
std::vector<OpCase> pointwise_cases();
std::vector<OpCase> redistribute_cases();
std::vector<OpCase> reduce_cases();
std::vector<OpCase> rms_norm_cases();
std::vector<OpCase> rotary_cases();
std::vector<OpCase> row_block_cases();
std::vector<OpCase> sample_token_cases();

/// All of the above.
std::vector<OpCase> all_cases();

/// A graph of one node: inputs x0, x1, ..., results y0, y1, ...
Graph case_graph(const OpCase& c);

/// Random arguments in the ranges of the case, representable in their types.
std::vector<HostTensor> case_arguments(const OpCase& c, uint64_t seed = 1);

/// The outputs of the op's reference kernel for given values of the inputs.
std::vector<HostTensor> evaluate(const OpCase& c, const std::vector<std::vector<double>>& inputs);

/// Expects of the CPU's kernel the bits of the ops that the case's op stands for, run one after the other there.
void expect_bits_of_decomposition(const OpCase& c);

/// Expects the builder to refuse the node with a UserError that holds the piece.
void expect_refused(const OpCase& c, const std::string& piece);

}  // namespace tokamak::test
