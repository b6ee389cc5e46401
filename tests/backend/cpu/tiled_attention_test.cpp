#include "backend/cpu/tiled_attention.h"

#include "base/parallel.h"
#include "tests/backend/cpu/attention_reference.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace tokamak::cpu {
namespace {

constexpr double kRounding = 1.0 / 256;  // half a unit in the last place of bf16

struct TiledAttention : testing::Test {
  void SetUp() override {
    if (tile_units() == nullptr) GTEST_SKIP() << "this CPU has no products of bf16 in tiles";
  }
  ~TiledAttention() override { set_num_threads(0); }
};

std::vector<const TileUnits*> all_units() {
  std::vector<const TileUnits*> units;
  for (const TileUnits* one : {amx_units(), avx512_bf16_units()})
    if (one) units.push_back(one);
  return units;
}

// Both passes on random data.
struct Passes {
  std::vector<Bf16> qkv, out, dout, dqkv;
  std::vector<float> lse;

  Passes(const TileUnits& units, const AttentionShape& s, const AttentionDropout& dropout = {},
         const Documents& documents = {}) {
    int64_t n = s.batch * s.time * s.width();
    qkv = random_values<Bf16>(3 * n, 1);
    dout = random_values<Bf16>(n, 2);
    out.resize(size_t(n));
    dqkv.resize(size_t(3 * n));
    lse.resize(size_t(s.batch * s.heads * s.time));
    const int32_t* ids = documents.empty() ? nullptr : documents.data();
    std::vector<char> workspace(tiled_attention_workspace_bytes(s, num_threads()), char(0xff));
    tiled_attention(units, s, dropout, ids, qkv.data(), out.data(), lse.data(), workspace.data());
    workspace.assign(tiled_attention_grad_workspace_bytes(s, num_threads()), char(0xff));
    tiled_attention_grad(units, s, dropout, ids, qkv.data(), out.data(), lse.data(), dout.data(), dqkv.data(),
                         workspace.data());
  }
};

// How far results may be from the reference: what the operands of the products with probabilities and with gradients of
// scores may move when each is rounded to bf16, and a rounding of the result.
struct Bounds {
  Doubles out, dqkv;

  Bounds(const Reference& r, const Doubles& x, const Doubles& stored_out, const Doubles& lse, const Doubles& dout)
      : out(stored_out.size(), 0), dqkv(x.size(), 0) {
    r.for_queries([&](int64_t b, int64_t h, int64_t i) {
      double delta = 0;
      for (int64_t d = 0; d < r.D; ++d) delta += stored_out[r.row(b, i, h, d)] * dout[r.row(b, i, h, d)];
      for (int64_t j = 0; j < r.T; ++j)
        if (r.sees(b, i, j)) add(r, x, dout, b, h, i, j, lse[size_t((b * r.H + h) * r.T + i)], delta);
    });
  }
  void add(const Reference& r, const Doubles& x, const Doubles& dout, int64_t b, int64_t h, int64_t i, int64_t j,
           double lse, double delta) {
    double p = std::exp(r.score(x, b, h, i, j) - lse), f = r.factor(b, h, i, j), dp = 0;
    for (int64_t d = 0; d < r.D; ++d) dp += dout[r.row(b, i, h, d)] * x[r.at(2, b, j, h, d)];
    double ds = std::abs(p * (dp * f - delta) * double(r.s.scale));
    for (int64_t d = 0; d < r.D; ++d) {
      out[r.row(b, i, h, d)] += kRounding * p * f * std::abs(x[r.at(2, b, j, h, d)]);
      dqkv[r.at(0, b, i, h, d)] += kRounding * ds * std::abs(x[r.at(1, b, j, h, d)]);
      dqkv[r.at(1, b, j, h, d)] += kRounding * ds * std::abs(x[r.at(0, b, i, h, d)]);
      dqkv[r.at(2, b, j, h, d)] += kRounding * p * f * std::abs(dout[r.row(b, i, h, d)]);
    }
  }
};

void expect_within(const std::vector<Bf16>& actual, const Doubles& expected, const Doubles& bound,
                   const std::string& what) {
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(to_float(actual[i]), expected[i], bound[i] + kRounding * std::abs(expected[i]) + 2e-5)
        << what << " element " << i;
}

void expect_agrees(const AttentionShape& s, const AttentionDropout& dropout = {}, const Documents& documents = {}) {
  for (const TileUnits* units : all_units()) {
    Passes run(*units, s, dropout, documents);
    Reference reference{s, dropout, documents};
    Doubles x = doubles(run.qkv), dout = doubles(run.dout), stored = doubles(run.out), out, lse;
    reference.forward(x, out, lse);
    // The gradient starts from the stored out, as the kernel's does.
    Bounds bounds(reference, x, stored, lse, dout);
    std::string what = fmt::format("{} B {} T {} H {} D {} causal {} dropout {}{}", units->name, s.batch, s.time,
                                   s.heads, s.head_dim, s.causal, dropout.p, documents.empty() ? "" : " documents");
    for (size_t i = 0; i < lse.size(); ++i) ASSERT_NEAR(run.lse[i], lse[i], 1e-5 * (1 + std::abs(lse[i]))) << what;
    expect_within(run.out, out, bounds.out, "out " + what);
    expect_within(run.dqkv, reference.backward(x, stored, lse, dout), bounds.dqkv, "dqkv " + what);
  }
}

TEST_F(TiledAttention, AgreesWithTheReference) {
  for (int64_t time : {1, 5, 65, 200})
    for (int64_t dim : {5, 64, 80})
      for (bool causal : {true, false})
        for (float p : {0.0f, 0.2f})
          expect_agrees({1, time, 2, dim, causal, 1 / std::sqrt(float(dim))}, {p, 0x123456789abcdefull, 7});
}

TEST_F(TiledAttention, AgreesWithTheReferenceWithinDocuments) {
  for (int64_t time : {65, 330})
    for (int64_t longest : {1, 7, 60, 300})
      for (bool causal : {true, false}) {
        AttentionShape shape{2, time, 1, 20, causal, 0.3f};
        expect_agrees(shape, {}, random_documents(shape, longest, unsigned(time)));
      }
  AttentionShape shape{2, 300, 2, 32, true, 0.2f};
  expect_agrees(shape, {0.2f, 42, 1}, random_documents(shape, 90, 1));
}

// What the f32 arithmetic of attention<Bf16> gives, to the roundings of both.
TEST_F(TiledAttention, AgreesWithItsTwin) {
  AttentionShape shape{1, 700, 2, 64, true, 0.125f};
  for (const TileUnits* units : all_units()) {
    Passes run(*units, shape);
    std::vector<Bf16> out(run.out.size());
    std::vector<float> lse(run.lse.size());
    std::vector<char> workspace(attention_workspace_bytes(shape, num_threads()));
    attention<Bf16>(shape, {}, nullptr, run.qkv.data(), out.data(), lse.data(), workspace.data());
    double error = 0, size = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      double is = to_float(run.out[i]), twin = to_float(out[i]);
      error += (is - twin) * (is - twin), size += twin * twin;
    }
    EXPECT_LT(std::sqrt(error / size), kRounding) << units->name;
  }
}

TEST_F(TiledAttention, LargeScoresStayFinite) {
  AttentionShape shape{1, 130, 1, 16, true, 40.0f};
  for (const TileUnits* units : all_units()) {
    Passes run(*units, shape);
    for (Bf16 x : run.out) ASSERT_TRUE(std::isfinite(to_float(x)));
    for (Bf16 x : run.dqkv) ASSERT_TRUE(std::isfinite(to_float(x)));
  }
}

TEST_F(TiledAttention, BitsDoNotDependOnTheThreads) {
  for (int64_t heads : {1, 4}) {  // fewer heads than threads takes the other path of the gradient
    AttentionShape shape{1, 300, heads, 24, true, 0.2f};
    for (const Documents& documents : {Documents{}, random_documents(shape, 90, 3)})
      for (const TileUnits* units : all_units()) {
        set_num_threads(1);
        Passes one(*units, shape, {0.1f, 9, 9}, documents);
        for (int threads : {2, 3}) {
          set_num_threads(threads);
          Passes many(*units, shape, {0.1f, 9, 9}, documents);
          EXPECT_EQ(one.out, many.out);
          EXPECT_EQ(one.lse, many.lse);
          EXPECT_EQ(one.dqkv, many.dqkv);
        }
      }
  }
}

// Two ranks in a zig-zag, as one rank has it: each its own queries, all keys.
TEST_F(TiledAttention, RanksHaveTheirRowsOfTheWhole) {
  AttentionShape whole{2, 240, 2, 32, true, 0.2f}, part = whole;
  part.ranks = 2, part.time = 120;
  AttentionDropout dropout{0.1f, 9, 9};  // by places in the whole sequence; a rank's blocks do not begin at one of 16
  int64_t C = whole.width();
  for (const TileUnits* units : all_units()) {
    Passes all(*units, whole, dropout);
    Reference reference{whole, dropout};
    Doubles x = doubles(all.qkv), dout = doubles(all.dout), stored = doubles(all.out), lse = doubles(all.lse);
    Doubles expected = reference.backward(x, stored, lse, dout);
    Bounds bounds(reference, x, stored, lse, dout);
    Doubles dkv(size_t(2 * 2 * 120 * 2 * C), 0);
    for (int64_t rank = 0; rank < 2; ++rank) {
      part.coordinate = rank;
      ZigZag zigzag = part.zigzag();
      std::vector<Bf16> qkv(size_t(2 * 120 * 3 * C)), kv(dkv.size()), dkv_part(dkv.size());
      std::vector<Bf16> out(size_t(2 * 120 * C)), dout_part(out.size()), dq(out.size());
      for (int64_t b = 0; b < 2; ++b) {
        for (int64_t t = 0; t < 240; ++t) {
          auto [owner, row] = zigzag.place(t);
          std::copy_n(&all.qkv[size_t((b * 240 + t) * 3 * C + C)], 2 * C,
                      &kv[size_t(((owner * 2 + b) * 120 + row) * 2 * C)]);
        }
        for (int64_t t = 0; t < 120; ++t) {
          int64_t from = b * 240 + zigzag.position(t);
          std::copy_n(&all.qkv[size_t(from * 3 * C)], 3 * C, &qkv[size_t((b * 120 + t) * 3 * C)]);
          std::copy_n(&all.dout[size_t(from * C)], C, &dout_part[size_t((b * 120 + t) * C)]);
        }
      }
      std::vector<float> lse_part(size_t(2 * 2 * 120));
      std::vector<char> workspace(std::max(tiled_attention_workspace_bytes(part, num_threads()),
                                           tiled_attention_grad_workspace_bytes(part, num_threads())));
      tiled_attention(*units, part, dropout, nullptr, qkv.data(), out.data(), lse_part.data(), workspace.data(),
                      kv.data());
      tiled_attention_grad(*units, part, dropout, nullptr, qkv.data(), out.data(), lse_part.data(), dout_part.data(),
                           dq.data(), workspace.data(), kv.data(), dkv_part.data());
      for (size_t i = 0; i < dkv.size(); ++i) dkv[i] += to_float(dkv_part[i]);
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t t = 0; t < 120; ++t)
          for (int64_t c = 0; c < C; ++c) {
            auto at = size_t((b * 240 + zigzag.position(t)) * C + c), here = size_t((b * 120 + t) * C + c);
            auto grad = size_t((b * 240 + zigzag.position(t)) * 3 * C + c);
            ASSERT_NEAR(to_float(out[here]), stored[at],
                        2 * bounds.out[at] + 2 * kRounding * std::abs(stored[at]) + 2e-5);
            ASSERT_NEAR(to_float(dq[here]), expected[grad], 2 * bounds.dqkv[grad] + 0.02) << rank << " " << t;
          }
    }
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t t = 0; t < 240; ++t) {
        auto [owner, row] = part.zigzag().place(t);
        for (int64_t c = 0; c < 2 * C; ++c) {
          auto at = size_t((b * 240 + t) * 3 * C + C + c);
          double is = dkv[size_t(((owner * 2 + b) * 120 + row) * 2 * C + c)];
          ASSERT_NEAR(is, expected[at], 2 * bounds.dqkv[at] + 4 * kRounding * std::abs(expected[at]) + 0.02) << t;
        }
      }
  }
}

}  // namespace
}  // namespace tokamak::cpu
