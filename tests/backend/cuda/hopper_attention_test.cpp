// Attention on Hopper's tensor cores against the op's reference, and the sums that its gradient gives.
#include "backend/cuda/hopper_attention.h"

#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/attention_harness.h"

#include <array>

namespace tokamak::test {
namespace {

struct HopperKind {
  bool causal, documents;
  double dropout;
};
constexpr HopperKind kHopperKinds[] = {{true, false, 0},   {false, false, 0},    {true, true, 0},
                                       {true, false, 0.2}, {false, false, 0.01}, {true, true, 0.5}};

// Of a type and heads of so many columns.
class HopperTypes : public testing::TestWithParam<std::tuple<DType, int64_t>> {
 protected:
  static DType dtype() { return std::get<0>(GetParam()); }
  static int64_t head_dim() { return std::get<1>(GetParam()); }
};
std::string name_of_types(const testing::TestParamInfo<HopperTypes::ParamType>& info) {
  return fmt::format("{}_{}", dtype_name(std::get<0>(info.param)), std::get<1>(info.param));
}
const auto kHopperTypes = testing::Combine(testing::Values(DType::kBF16, DType::kF16), testing::Values(64, 128));

class HopperAttentionTypes : public HopperTypes {};

// One tile and several, whole and half ones of queries; heads that all blocks share, of their own, and both.
TEST_P(HopperAttentionTypes, KernelsEqualReference) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (auto [causal, documents, dropout] : kHopperKinds)
    for (auto [B, T, H] :
         {std::array<int64_t, 3>{1, 128, 1}, {2, 256, 3}, {3, 128, 60}, {6, 256, 25}, {1, 640, 2}, {2, 896, 5}}) {
      AttentionProblem p = problem(B, T, H, head_dim(), dtype(), causal, dropout, documents);
      if (H == 5) p.place = {2, 10, 0, 2, 5, 0};  // heads 5 to 9 of 10, of samples 2 and 3 of 4
      ASSERT_TRUE(hopper_supports(p, {9, 0}));
      Example(p).check(make_hopper_attention(gpu_context(), p), make_hopper_attention_grad(gpu_context(), p));
    }
}

// Rows of one rank of several: chunks of one tile of queries and of two, keys that no query sees; heads that all blocks
// share, and with 132 of them or more also of their own.
TEST_P(HopperAttentionTypes, KernelsOfARankEqualReference) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (auto [documents, dropout] : {std::pair{false, 0.0}, {true, 0.0}, {false, 0.2}, {true, 0.5}})
    for (auto [B, T, H, ranks, rank] : {std::array<int64_t, 5>{1, 512, 1, 2, 0},
                                        {1, 512, 1, 2, 1},
                                        {2, 512, 3, 2, 0},
                                        {2, 512, 5, 2, 1},
                                        {1, 1024, 2, 3, 1},
                                        {1, 512, 3, 4, 3},
                                        {1, 512, 3, 4, 0},
                                        {1, 512, 133, 2, 1}}) {
      if (H == 133 && (!documents || dropout == 0 || dtype() != DType::kBF16)) continue;  // references are slow
      AttentionProblem p = of_ranks(ranks, problem(B, T, H, head_dim(), dtype(), true, dropout, documents));
      if (H == 5) p.place = {2, 10, 0, 2, 5, 0};
      ASSERT_TRUE(hopper_supports(p, {9, 0}));
      Example(p, rank).check(make_hopper_attention(gpu_context(), p), make_hopper_attention_grad(gpu_context(), p));
    }
}

// What the gradient reads: random qkv, dout and documents, and what the forward kernel makes of them.
std::vector<HostTensor> hopper_backward_inputs(const AttentionProblem& p) {
  ValueType out{p.dtype, {p.batch, p.time, p.width()}}, lse{DType::kF32, {p.batch, p.heads, p.time}};
  HostTensor documents = random_tensor({DType::kI32, {p.batch, p.time}}, 3, 4);
  make_starts(documents);
  std::vector<HostTensor> in{random_tensor({p.dtype, {p.batch, p.time, 3 * p.width()}}, 1)};
  HostTensor rng({DType::kI32, {2}});
  rng[0] = 5, rng[1] = 7;
  if (p.dropout > 0) in.push_back(rng);
  if (p.documents) in.push_back(documents);
  std::vector<HostTensor> forward = KernelRun(make_hopper_attention(gpu_context(), p))(in, {out, lse});
  in.insert(in.begin() + 1, {forward[0], forward[1], random_tensor(out, 2)});
  return in;
}

// What can be said of the sums down the columns of x.
struct Columns {
  std::vector<double> sum, absolute, squares;
  explicit Columns(const HostTensor& x) : sum(size_t(x.shape().back())), absolute(sum), squares(sum) {
    for (int64_t i = 0; i < x.size(); ++i) {
      size_t c = size_t(i) % sum.size();
      sum[c] += x[i], absolute[c] += std::fabs(x[i]), squares[c] += x[i] * x[i];
    }
  }
};

// Sums of dQ, and of dV with dropout, are those of what is stored, else sums of dV are those of dout, by what f32 loses
// at most. Rounding to 16 bits changes numbers by up to `unit` of themselves, independently. That of P, whose rows then
// sum to nearly 1, and of dV moves the sum of what is stored of dV by less than `unit` times the root of the sum of
// squares: 0.5 times in a simulation; and that of dS and dK moves the stored dK's from 0 by 2.8 times. Without the
// identities it is hundreds.
void expect_bias_gradient(const HostTensor& sums, const HostTensor& dqkv, const HostTensor& dout, bool dropout) {
  double unit = std::ldexp(1.0, dqkv.type.dtype == DType::kBF16 ? -8 : -11);
  Columns stored(dqkv), above(dout);
  size_t width = above.sum.size();
  ASSERT_EQ(size_t(sums.size()), 3 * width);
  for (size_t c = 0; c < width; ++c) {
    size_t k = width + c, v = 2 * width + c;
    ASSERT_NEAR(sums.data[c], stored.sum[c], 1e-6 * stored.absolute[c]) << "q, column " << c;
    ASSERT_EQ(sums.data[k], 0) << "k, column " << c;
    ASSERT_NEAR(0, stored.sum[k], 8 * unit * std::sqrt(stored.squares[k])) << "stored k, column " << c;
    if (dropout) {
      ASSERT_NEAR(sums.data[v], stored.sum[v], 1e-6 * stored.absolute[v]) << "v, column " << c;
      continue;
    }
    ASSERT_NEAR(sums.data[v], above.sum[c], 1e-6 * above.absolute[c]) << "v, column " << c;
    ASSERT_NEAR(sums.data[v], stored.sum[v], 2 * unit * std::sqrt(stored.squares[v] + above.squares[c]))
        << "stored v, column " << c;
  }
}

// dqkv keeps its bits, and its sums are those of what is stored, but for rounding.
void check_hopper_sums(AttentionProblem p) {
  SCOPED_TRACE(name_of(p));
  std::vector<HostTensor> in = hopper_backward_inputs(p);
  ValueType qkv = in[0].type, sums{DType::kF32, {3 * p.width()}};
  HostTensor alone = KernelRun(make_hopper_attention_grad(gpu_context(), p))(in, {qkv})[0];
  p.sums = true;
  std::vector<HostTensor> both = KernelRun(make_hopper_attention_grad(gpu_context(), p))(in, {qkv, sums});
  EXPECT_TRUE(both[0].data == alone.data);
  expect_bias_gradient(both[1], alone, in[3], p.dropout > 0);
}

TEST_P(HopperAttentionTypes, SumsWhatItWrites) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (auto [causal, documents, dropout] : kHopperKinds)
    for (auto [B, T, H] : {std::array<int64_t, 3>{1, 128, 1}, {2, 256, 3}, {3, 128, 60}, {1, 640, 2}, {12, 512, 12}})
      check_hopper_sums(problem(B, T, H, head_dim(), dtype(), causal, dropout, documents));
}

// What is beside the result in eight bits is what a cast would make of it.
void check_hopper_result_float8(AttentionProblem p) {
  SCOPED_TRACE(name_of(p));
  Example example(p);
  ValueTypes types = example.out_types;
  std::vector<HostTensor> in = example.forward_in, wide = KernelRun(make_hopper_attention(gpu_context(), p))(in, types);
  p.float8 = true;
  types.push_back({DType::kF8E4M3, types[0].shape});
  constexpr float kFactor = 300.7f;  // as which some are too large
  in.push_back(HostTensor({DType::kF32, {}}, {kFactor}));
  std::vector<HostTensor> both = KernelRun(make_hopper_attention(gpu_context(), p))(in, types);
  EXPECT_TRUE(both[0].data == wide[0].data);
  EXPECT_TRUE(both[1].data == wide[1].data);
  for (int64_t i = 0; i < wide[0].size(); ++i)
    ASSERT_EQ(both[2][i], round_to(DType::kF8E4M3, float(wide[0][i]) * kFactor)) << i << ", " << wide[0][i];
}

// In eight bits dqkv is what a cast would make of it, and its sums keep their bits.
void check_hopper_float8(AttentionProblem p, bool sums) {
  SCOPED_TRACE(name_of(p));
  std::vector<HostTensor> in = hopper_backward_inputs(p);
  ValueTypes types{in[0].type};
  p.sums = sums;
  if (sums) types.push_back({DType::kF32, {3 * p.width()}});
  std::vector<HostTensor> wide = KernelRun(make_hopper_attention_grad(gpu_context(), p))(in, types);
  p.float8 = true;
  types[0].dtype = DType::kF8E5M2;
  constexpr float kFactor = 30000.7f;  // as which some are too large
  in.push_back(HostTensor({DType::kF32, {}}, {kFactor}));
  std::vector<HostTensor> narrow = KernelRun(make_hopper_attention_grad(gpu_context(), p))(in, types);
  if (sums) {
    EXPECT_TRUE(narrow[1].data == wide[1].data);
  }
  for (int64_t i = 0; i < wide[0].size(); ++i)
    ASSERT_EQ(narrow[0][i], round_to(DType::kF8E5M2, float(wide[0][i]) * kFactor)) << i << ", " << wide[0][i];
}

TEST_P(HopperAttentionTypes, WritesEightBitsAsACastWould) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (auto [causal, documents, dropout] : kHopperKinds)
    for (auto [B, T, H] : {std::array<int64_t, 3>{1, 128, 1}, {2, 256, 3}, {3, 128, 60}, {1, 640, 2}, {12, 512, 12}})
      for (bool sums : {false, true})
        check_hopper_float8(problem(B, T, H, head_dim(), dtype(), causal, dropout, documents), sums);
  for (auto [causal, documents, dropout] : kHopperKinds)
    for (auto [B, T, H] : {std::array<int64_t, 3>{1, 128, 1}, {2, 256, 3}, {3, 128, 60}, {1, 640, 2}})
      check_hopper_result_float8(problem(B, T, H, head_dim(), dtype(), causal, dropout, documents));
}

INSTANTIATE_TEST_SUITE_P(Gpu, HopperAttentionTypes, kHopperTypes, name_of_types);

// Small, for compute-sanitizer (bench/gpu.sh sanitize).
TEST(GpuSanitized, HopperAttention) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (auto [head_dim, documents, dropout] :
       {std::tuple{64, false, 0.0}, {64, true, 0.0}, {64, true, 0.2}, {128, false, 0.0}, {128, true, 0.2}}) {
    AttentionProblem p = problem(2, 384, 2, head_dim, DType::kBF16, true, dropout, documents);
    check_hopper_sums(p);
    check_hopper_float8(p, true);
    check_hopper_result_float8(p);
    Example(p).check(make_hopper_attention(gpu_context(), p), make_hopper_attention_grad(gpu_context(), p));
    AttentionProblem of_rank = of_ranks(2, problem(1, 512, 2, head_dim, DType::kBF16, true, dropout, documents));
    Example(of_rank).check(make_hopper_attention(gpu_context(), of_rank),
                           make_hopper_attention_grad(gpu_context(), of_rank));
  }
}

TEST(HopperAttention, SaysWhatItSupports) {
  AttentionProblem p = problem(2, 256, 4, 64, DType::kBF16);
  EXPECT_TRUE(hopper_supports(p, {9, 0}));
  for (cuda::Architecture a : all_architectures()) EXPECT_EQ(hopper_supports(p, a), a.major == 9) << a.major;
  EXPECT_FALSE(hopper_supports(problem(2, 256, 4, 64, DType::kF32), {9, 0}));
  EXPECT_FALSE(hopper_supports(problem(2, 200, 4, 64, DType::kBF16), {9, 0}));
  EXPECT_TRUE(hopper_supports(problem(2, 256, 4, 128, DType::kBF16), {9, 0}));
  EXPECT_FALSE(hopper_supports(problem(2, 256, 4, 96, DType::kBF16), {9, 0}));
  EXPECT_TRUE(hopper_supports(problem(2, 256, 4, 64, DType::kBF16, true, 0.96), {9, 0}));
  EXPECT_FALSE(hopper_supports(problem(2, 256, 4, 64, DType::kBF16, true, 0.97), {9, 0})) << "0x7c00 is no number";
  EXPECT_TRUE(hopper_supports(problem(2, 256, 4, 64, DType::kBF16, true, 0, true), {9, 0}));
  EXPECT_FALSE(hopper_supports(problem(2, 256, 4, 64, DType::kBF16, false, 0, true), {9, 0}));
  EXPECT_TRUE(hopper_supports(of_ranks(2, problem(2, 512, 4, 64, DType::kBF16)), {9, 0}));
  EXPECT_FALSE(hopper_supports(of_ranks(2, problem(2, 256, 4, 64, DType::kBF16)), {9, 0})) << "chunks of 128";
  EXPECT_TRUE(hopper_supports(of_ranks(2, problem(2, 256, 4, 128, DType::kBF16)), {9, 0}));
  EXPECT_FALSE(hopper_fills(p, 132));
  EXPECT_TRUE(hopper_fills(problem(6, 256, 11, 64, DType::kBF16), 132));
}

class HopperSource : public HopperTypes {};

// Every kind of one type and size; the plainest and the one that has everything of the others.
TEST_P(HopperSource, Compiles) {
  bool all = dtype() == DType::kBF16 && head_dim() == 64;
  for (size_t i = 0; i < std::size(kHopperKinds); ++i) {
    if (!all && i > 0 && i + 1 < std::size(kHopperKinds)) continue;
    auto [causal, documents, dropout] = kHopperKinds[i];
    AttentionProblem p = problem(1, 128, 2, head_dim(), dtype(), causal, dropout, documents);
    if (documents) p.place = {2, 4, 0, 2, 2, 0};
    bool plainest = i == 0;
    for (bool float8 : plainest ? std::vector{true, false} : std::vector{false}) {
      p.float8 = float8;
      expect_compiles(hopper_attention_source(p), {"attention"}, {{9, 0}});
    }
    for (bool sums : {false, true}) {
      p.sums = sums;
      expect_compiles(hopper_attention_rows_source(p), {"attention_rows", "attention_rows_and_sums"},
                      one_architecture());
      expect_compiles(hopper_attention_grad_source(p), {"attention_grad"}, {{9, 0}});
      p.float8 = plainest;
      if (p.float8) expect_compiles(hopper_attention_grad_source(p), {"attention_grad"}, {{9, 0}});
      p.float8 = false;
    }
    if (!causal) continue;
    p.sums = false;
    p.ranks = 4;
    expect_compiles(hopper_attention_source(p), {"attention"}, {{9, 0}});
    expect_compiles(hopper_attention_rows_source(p), {"attention_rows"}, one_architecture());
    expect_compiles(hopper_attention_grad_source(p), {"attention_grad"}, {{9, 0}});
  }
  std::string sums = cuda::hopper_attention_column_sums_source(problem(1, 128, 2, head_dim(), dtype()));
  expect_compiles(sums, {"attention_column_sums"}, {{9, 0}});
}
INSTANTIATE_TEST_SUITE_P(nvrtc, HopperSource, kHopperTypes, name_of_types);

}  // namespace
}  // namespace tokamak::test
