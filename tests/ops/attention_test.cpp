#include "ops/attention.h"
#include "ops/float8.h"
#include "ops/interpret.h"
#include "tests/ops/harness.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs attrs(int64_t heads, bool causal, double dropout = 0) {
  return {{"causal", causal}, {"dropout", dropout}, {"heads", heads}, {"scale", 0.6}, {"stream", int64_t(4)}};
}
// Of the second two of four heads, in the second half of the batch.
Attrs part_attrs(int64_t heads, double dropout) {
  Attrs all = attrs(heads, true, dropout);
  all.set("place", std::vector<int64_t>{2, 4, 0, 2, 2, 0});
  return all;
}
Attrs sums_attrs(int64_t heads) {
  Attrs all = attrs(heads, true);
  all.set("sums", true);
  return all;
}
Attrs float8_attrs(Attrs all) {
  all.set("float8", true);
  return all;
}

// lse as the forward pass would give it does not matter here: the formula is the same for any.
std::vector<CaseInput> grad_inputs(int64_t B, int64_t T, int64_t C, int64_t heads) {
  return {f32({B, T, 3 * C}), f32({B, T, C}), f32({B, heads, T}, 1, 3), f32({B, T, C})};
}
std::vector<CaseInput> bf16_grad_inputs(int64_t B, int64_t T, int64_t C, int64_t heads) {
  return {bf16({B, T, 3 * C}), bf16({B, T, C}), f32({B, heads, T}, 1, 3), bf16({B, T, C})};
}

}  // namespace

std::vector<OpCase> attention_cases() {
  std::vector<CaseInput> with_rng = grad_inputs(2, 5, 6, 2);
  with_rng.push_back(rng());
  std::vector<CaseInput> of_part = grad_inputs(2, 5, 6, 2);
  of_part.push_back(rng_of_part());
  std::vector<CaseInput> with_documents = grad_inputs(2, 7, 6, 2), with_both = with_rng;
  with_documents.push_back(documents({2, 7}, 3));
  with_both.push_back(documents({2, 5}, 3));
  std::vector<CaseInput> chunks_with_both = grad_inputs(2, 12, 6, 2);
  chunks_with_both.push_back(rng());
  chunks_with_both.push_back(documents({2, 12}, 4));
  std::vector<CaseInput> with_factor = bf16_grad_inputs(2, 9, 8, 2);
  with_factor.push_back(f32({}, 30, 40));
  std::vector<CaseInput> factor_and_documents = bf16_grad_inputs(2, 7, 6, 2);
  factor_and_documents.push_back(documents({2, 7}, 3));
  factor_and_documents.push_back(f32({}, 30, 40));
  std::vector<CaseInput> long_documents = grad_inputs(2, 230, 8, 2);
  long_documents.push_back(documents({2, 230}, 3));
  std::vector<OpCase> cases = {
      {"Causal", &op::attention, {f32({2, 5, 18})}, attrs(2, true)},
      {"Full", &op::attention, {f32({2, 5, 18})}, attrs(3, false)},
      {"OneHead", &op::attention, {f32({1, 4, 12})}, attrs(1, true)},
      {"OneToken", &op::attention, {f32({2, 1, 12})}, attrs(2, true)},
      {"Dropout", &op::attention, {f32({2, 5, 18}), rng()}, attrs(2, true, 0.3)},
      {"DropoutPart", &op::attention, {f32({2, 5, 18}), rng_of_part()}, part_attrs(2, 0.3)},
      {"InChunks", &op::attention, {f32({2, 12, 18})}, attrs(2, true)},
      {"InChunksDropout", &op::attention, {f32({2, 12, 18}), rng()}, attrs(2, true, 0.3)},
      {"InChunksDocuments", &op::attention, {f32({2, 12, 18}), documents({2, 12}, 4)}, attrs(2, true)},
      {"Long", &op::attention, {f32({1, 150, 24})}, attrs(2, true)},
      {"LongFull", &op::attention, {f32({1, 131, 12})}, attrs(1, false)},
      {"Peaked", &op::attention, {f32({1, 20, 12}, -9, 9)}, attrs(2, true), 1e-4},
      {"Bf16", &op::attention, {bf16({2, 9, 24})}, attrs(2, true), 2e-2},
      {"Documents", &op::attention, {f32({2, 7, 18}), documents({2, 7}, 3)}, attrs(2, true)},
      {"DocumentsFull", &op::attention, {f32({2, 7, 18}), documents({2, 7}, 3)}, attrs(3, false)},
      {"DocumentsDropout", &op::attention, {f32({2, 7, 18}), rng(), documents({2, 7}, 3)}, attrs(2, true, 0.3)},
      {"DocumentsShort", &op::attention, {f32({1, 90, 6}), documents({1, 90}, 60)}, attrs(1, true)},
      {"DocumentsLong", &op::attention, {f32({2, 230, 12}), documents({2, 230}, 3)}, attrs(2, true)},
      {"DocumentsLongFull", &op::attention, {f32({2, 230, 12}), documents({2, 230}, 3)}, attrs(2, false)},
      {"DocumentsBf16", &op::attention, {bf16({2, 9, 24}), documents({2, 9}, 3)}, attrs(2, true), 2e-2},
      {"Float8", &op::attention, {bf16({2, 9, 24}), f32({}, 30, 40)}, float8_attrs(attrs(2, true)), 2e-2},
      {"Float8Documents",
       &op::attention,
       {bf16({2, 9, 24}), documents({2, 9}, 3), f32({}, 30, 40)},
       float8_attrs(attrs(2, true)),
       2e-2},
      {"Causal", &op::attention_grad, grad_inputs(2, 5, 6, 2), attrs(2, true)},
      {"Full", &op::attention_grad, grad_inputs(2, 5, 6, 3), attrs(3, false)},
      {"Dropout", &op::attention_grad, with_rng, attrs(2, true, 0.3)},
      {"DropoutPart", &op::attention_grad, of_part, part_attrs(2, 0.3)},
      {"InChunks", &op::attention_grad, grad_inputs(2, 12, 6, 2), attrs(2, true)},
      {"InChunksBoth", &op::attention_grad, chunks_with_both, attrs(2, true, 0.3)},
      {"Long", &op::attention_grad, grad_inputs(1, 150, 8, 2), attrs(2, true), 1e-4},
      {"Documents", &op::attention_grad, with_documents, attrs(2, true)},
      {"DocumentsFull", &op::attention_grad, with_documents, attrs(2, false)},
      {"DocumentsDropout", &op::attention_grad, with_both, attrs(2, true, 0.3)},
      {"DocumentsLong", &op::attention_grad, long_documents, attrs(2, true), 1e-4},
      {"DocumentsLongFull", &op::attention_grad, long_documents, attrs(2, false), 1e-4},
      {"Sums", &op::attention_grad, grad_inputs(2, 5, 6, 2), sums_attrs(2)},
      {"SumsBf16", &op::attention_grad, bf16_grad_inputs(2, 9, 8, 2), sums_attrs(2), 2e-2},
      {"SumsDocuments", &op::attention_grad, with_documents, sums_attrs(2)},
      {"Float8", &op::attention_grad, with_factor, float8_attrs(attrs(2, true)), 2e-2},
      {"Float8Sums", &op::attention_grad, with_factor, float8_attrs(sums_attrs(2)), 2e-2},
      {"Float8Documents", &op::attention_grad, factor_and_documents, float8_attrs(attrs(2, true)), 2e-2},
  };
  return with_gradients(std::move(cases), op::attention, 1);
}

namespace {

TEST(Attention, RefusesWrongShapes) {
  expect_refused({"", &op::attention, {f32({2, 5, 18})}, attrs(4, true)},
                 "expected heads that divide the width 6, got 4");
  expect_refused({"", &op::attention, {f32({2, 5, 17})}, attrs(1, true)},
                 "expected a packed projection (B, T, 3C), got f32[2,5,17]");
  expect_refused({"", &op::attention, {f32({5, 18})}, attrs(1, true)}, "got f32[5,18]");
  expect_refused({"", &op::attention, {f32({2, 5, 18})}, attrs(2, true, 0.5)},
                 "expected 2 inputs with dropout 0.5, got 1");
  expect_refused({"", &op::attention, {f32({2, 5, 18}), rng(), documents({2, 5}, 2)}, attrs(2, true)},
                 "expected 1 inputs with dropout 0, got 3; documents would be one more");
  expect_refused({"", &op::attention, {f32({2, 5, 18}), documents({2, 4}, 2)}, attrs(2, true)},
                 "expected documents to be i32[2,5], got i32[2,4]");
  expect_refused({"", &op::attention, {f32({2, 5, 18}), documents({2, 5}, 2)}, attrs(2, true, 0.5)},
                 "expected rng to be i32[2], got i32[2,5]");
  expect_refused({"", &op::attention_grad, grad_inputs(2, 5, 6, 2), attrs(3, true)},
                 "expected lse to be f32[2,3,5], got f32[2,2,5]");
  expect_refused({"", &op::attention_grad, grad_inputs(2, 5, 6, 2), float8_attrs(attrs(2, true))},
                 "expected 5 inputs with dropout 0, got 4");
}

// What a cast behind it would give, of sums of what it rounds.
TEST(Attention, GradientInEightBitsIsThatOfACast) {
  std::vector<HostTensor> in;
  for (const Shape& shape : {Shape{2, 9, 24}, {2, 9, 8}, {2, 2, 9}, {2, 9, 8}}) {
    in.push_back(random_tensor({in.size() == 2 ? DType::kF32 : DType::kBF16, shape}, int(in.size())));
    if (in.size() == 3)
      for (double& lse : in.back().data) lse += 2;
  }
  auto run = [&](const Attrs& attrs, ValueTypes types) {
    Node node;
    node.op = &op::attention_grad;
    node.attrs = attrs;
    std::vector<const HostTensor*> pointers;
    for (const HostTensor& tensor : in) pointers.push_back(&tensor);
    std::vector<HostTensor> out(types.begin(), types.end());
    op::attention_grad.reference(node, pointers, out);
    return out;
  };
  ValueType sums{DType::kF32, {24}}, dqkv{DType::kBF16, {2, 9, 24}};
  std::vector<HostTensor> wide = run(sums_attrs(2), {dqkv, sums});
  in.push_back(HostTensor({DType::kF32, {}}, {80000}));
  dqkv.dtype = DType::kF8E5M2;
  std::vector<HostTensor> narrow = run(float8_attrs(sums_attrs(2)), {dqkv, sums});
  EXPECT_TRUE(narrow[1].data == wide[1].data);
  int saturated = 0;
  for (int64_t i = 0; i < wide[0].size(); ++i) {
    double expected = round_to(DType::kF8E5M2, round_to(DType::kBF16, wide[0][i]) * 80000);
    ASSERT_EQ(narrow[0][i], expected) << i;
    saturated += std::abs(expected) == largest_float8(DType::kF8E5M2);
  }
  EXPECT_GT(saturated, 0);
  EXPECT_LT(saturated, wide[0].size());
}

// On average over the positions, of which the first ones see fewer.
TEST(Attention, CausalKeysAreThoseOfTheWindow) {
  for (int64_t window : {0, 1, 7, 32, 100}) {
    double seen = 0;
    constexpr int64_t kPositions = 64;
    for (int64_t t = 0; t < kPositions; ++t) seen += double(window == 0 ? t + 1 : std::min(window, t + 1)) / kPositions;
    EXPECT_NEAR(causal_keys(kPositions, window), seen, 0.5 + 1e-9) << window << ": the pair with itself counts half";
  }
}

TEST(Attention, DrawsForEachPairThatIsSeen) {
  auto draws = [](std::vector<CaseInput> inputs, const Attrs& attrs) {
    Graph graph = case_graph({"", &op::attention, std::move(inputs), attrs});
    return node_cost(graph, graph.nodes()[0]).draws;
  };
  EXPECT_EQ(draws({f32({3, 8, 18})}, attrs(2, true)), 0);
  EXPECT_EQ(draws({f32({3, 8, 18}), rng()}, attrs(2, true, 0.3)), 3 * 2 * 8 * 8 / 2);
  EXPECT_EQ(draws({f32({3, 8, 18}), rng()}, attrs(2, false, 0.3)), 3 * 2 * 8 * 8);
}

TEST(Attention, LooksOnlyBack) {
  OpCase c{"", &op::attention, {f32({1, 4, 6})}, attrs(1, true)};
  std::vector<HostTensor> arguments = case_arguments(c);
  Graph graph = case_graph(c);
  HostTensor before = interpret(graph, arguments).results[0];
  for (int64_t i = 0; i < 6; ++i) arguments[0][3 * 6 + i] += 1;  // the last token
  HostTensor after = interpret(graph, arguments).results[0];
  for (int64_t i = 0; i < 3 * 2; ++i) EXPECT_EQ(before[i], after[i]);
  EXPECT_NE(before[6], after[6]);
}

TEST(Attention, LooksOnlyIntoItsOwnDocument) {
  for (bool causal : {true, false}) {
    OpCase c{"", &op::attention, {f32({1, 5, 6}), documents({1, 5}, 2)}, attrs(1, causal)};
    std::vector<HostTensor> arguments = case_arguments(c);
    arguments[1].data = {0, 0, 0, 3, 3};
    Graph graph = case_graph(c);
    HostTensor before = interpret(graph, arguments).results[0];
    for (int64_t i = 0; i < 6; ++i) arguments[0][2 * 6 + i] += 1;  // the last token of the first document
    HostTensor after = interpret(graph, arguments).results[0];
    for (int64_t t = 0; t < 5; ++t) {
      bool sees = causal ? t == 2 : t <= 2;
      EXPECT_EQ(before[2 * t] == after[2 * t], !sees) << "causal " << causal << ", position " << t;
    }
  }
}

// Of the values as they are stored, and beside them as they are without the sums.
TEST(AttentionGrad, SumsWhatItStores) {
  OpCase plain{"", &op::attention_grad, bf16_grad_inputs(2, 9, 8, 2), attrs(2, true)}, with = plain;
  with.attrs = sums_attrs(2);
  std::vector<HostTensor> arguments = case_arguments(plain);
  HostTensor dqkv = interpret(case_graph(plain), arguments).results[0];
  std::vector<HostTensor> both = interpret(case_graph(with), arguments).results;
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].data, dqkv.data);
  ASSERT_EQ(to_string(both[1].type), "f32[24]");
  for (int64_t c = 0; c < 24; ++c) {
    double sum = 0;
    for (int64_t row = 0; row < 2 * 9; ++row) sum += dqkv[row * 24 + c];
    EXPECT_DOUBLE_EQ(both[1][c], sum) << "column " << c;
  }
}

}  // namespace
}  // namespace tokamak::test
