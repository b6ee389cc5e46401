#include "backend/cpu/attention.h"

#include "base/parallel.h"
#include "tests/backend/cpu/attention_reference.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace tokamak::cpu {
namespace {

template <typename T>
void expect_near(const std::vector<T>& actual, const Doubles& expected, double tolerance, const std::string& what) {
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(to_float(actual[i]), expected[i], tolerance * (1 + std::abs(expected[i]))) << what << " element " << i;
}

// Both passes on random data.
template <typename T>
struct Passes {
  std::vector<T> qkv, out, dout, dqkv;
  std::vector<float> lse;

  Passes(const AttentionShape& s, const AttentionDropout& dropout, const Documents& documents = {}) {
    int64_t n = s.batch * s.time * s.width();
    qkv = random_values<T>(3 * n, 1);
    dout = random_values<T>(n, 2);
    out.resize(size_t(n));
    dqkv.resize(size_t(3 * n));
    lse.resize(size_t(s.batch * s.heads * s.time));
    std::vector<char> workspace(attention_workspace_bytes(s, num_threads()));
    const int32_t* ids = documents.empty() ? nullptr : documents.data();
    attention(s, dropout, ids, qkv.data(), out.data(), lse.data(), workspace.data());
    workspace.assign(attention_grad_workspace_bytes(s, num_threads()), 0);
    attention_grad(s, dropout, ids, qkv.data(), out.data(), lse.data(), dout.data(), dqkv.data(), workspace.data());
  }
};

template <typename T>
void expect_agrees(const AttentionShape& s, const AttentionDropout& dropout, const Documents& documents = {}) {
  Passes<T> run(s, dropout, documents);
  Reference reference{s, dropout, documents};
  Doubles out, lse;
  reference.forward(doubles(run.qkv), out, lse);
  std::string what = fmt::format("B {} T {} H {} D {} causal {} dropout {}{}", s.batch, s.time, s.heads, s.head_dim,
                                 s.causal, dropout.p, documents.empty() ? "" : " documents");
  bool wide = sizeof(T) == 4;
  expect_near(run.out, out, wide ? 2e-5 : 5e-3, "out " + what);
  expect_near(run.lse, lse, 1e-5, "lse " + what);
  // The reference gradient starts from the stored out, as the kernel does.
  expect_near(run.dqkv, reference.backward(doubles(run.qkv), doubles(run.out), doubles(run.lse), doubles(run.dout)),
              wide ? 5e-5 : 6e-3, "dqkv " + what);
}

// Restores the thread count, so that one test does not change another.
struct Attention : testing::Test {
  ~Attention() override { set_num_threads(0); }
};

TEST_F(Attention, AgreesWithTheReference) {
  for (int64_t time : {1, 5, 64, 65, 200})
    for (int64_t dim : {5, 8, 16, 64, 80})
      for (int64_t heads : {1, 3})
        for (bool causal : {true, false})
          for (float p : {0.0f, 0.2f}) {
            AttentionShape shape{2, time, heads, dim, causal, 1 / std::sqrt(float(dim))};
            expect_agrees<float>(shape, {p, 0x123456789abcdefull, 7});
          }
}

TEST_F(Attention, AgreesWithTheReferenceInBf16) {
  for (int64_t time : {5, 100})
    for (int64_t dim : {32, 64, 96})
      for (float p : {0.0f, 0.1f}) expect_agrees<Bf16>({1, time, 2, dim, true, 0.125f}, {p, 42, 1});
}

// Documents far shorter and longer than a block of queries or of keys, in one head and in more than there are threads.
TEST_F(Attention, AgreesWithTheReferenceWithinDocuments) {
  for (int64_t time : {1, 65, 200, 420})
    for (int64_t longest : {1, 7, 60, 300})
      for (int64_t heads : {1, 3})
        for (bool causal : {true, false}) {
          AttentionShape shape{2, time, heads, 20, causal, 0.3f};
          expect_agrees<float>(shape, {}, random_documents(shape, longest, unsigned(time)));
        }
  AttentionShape shape{2, 300, 2, 32, true, 0.2f};
  expect_agrees<float>(shape, {0.2f, 42, 1}, random_documents(shape, 90, 1));
  expect_agrees<Bf16>(shape, {0.1f, 42, 1}, random_documents(shape, 90, 2));
}

// A document has the same output and gradients wherever it stands, and whatever stands around it.
TEST_F(Attention, DocumentsDoNotSeeEachOther) {
  AttentionShape shape{1, 250, 2, 16, true, 0.3f};
  Documents documents(250, 0);
  std::fill(documents.begin() + 110, documents.end(), 110);
  Passes<float> packed(shape, {}, documents);
  int64_t C = shape.width();
  for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, 110}, {110, 250}}) {
    AttentionShape alone = shape;
    alone.time = end - begin;
    auto part = [&](const std::vector<float>& x, int64_t width) {
      return std::vector<float>(x.begin() + begin * width, x.begin() + end * width);
    };
    std::vector<float> qkv = part(packed.qkv, 3 * C), dout = part(packed.dout, C), out(dout.size()), dqkv(qkv.size());
    std::vector<float> lse(size_t(alone.time * alone.heads));
    std::vector<char> workspace(attention_grad_workspace_bytes(alone, num_threads()));
    attention(alone, {}, nullptr, qkv.data(), out.data(), lse.data(), workspace.data());
    attention_grad(alone, {}, nullptr, qkv.data(), out.data(), lse.data(), dout.data(), dqkv.data(), workspace.data());
    expect_near(part(packed.out, C), doubles(out), 1e-5, "out");
    expect_near(part(packed.dqkv, 3 * C), doubles(dqkv), 1e-5, "dqkv");
  }
}

TEST_F(Attention, OneDocumentHasTheBitsOfNone) {
  for (bool causal : {true, false}) {
    AttentionShape shape{2, 200, 3, 16, causal, 0.3f};
    Passes<float> none(shape, {}), one(shape, {}, Documents(400, 0));
    EXPECT_EQ(none.out, one.out);
    EXPECT_EQ(none.lse, one.lse);
    EXPECT_EQ(none.dqkv, one.dqkv);
  }
}

TEST_F(Attention, GradientAgreesWithFiniteDifferences) {
  AttentionShape shape{1, 70, 2, 16, true, 0.25f};
  AttentionDropout dropout{0.1f, 5, 3};
  Documents documents = random_documents(shape, 50, 1);
  Passes<float> run(shape, dropout, documents);
  Reference reference{shape, dropout, documents};
  auto loss = [&](const Doubles& x) {
    Doubles out, lse;
    reference.forward(x, out, lse);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += out[i] * double(run.dout[i]);
    return sum;
  };
  for (size_t i = 0; i < run.qkv.size(); i += run.qkv.size() / 37) {
    Doubles up = doubles(run.qkv), down = up;
    up[i] += 1e-4;
    down[i] -= 1e-4;
    EXPECT_NEAR(run.dqkv[i], (loss(up) - loss(down)) / 2e-4, 1e-4) << "element " << i;
  }
}

TEST_F(Attention, LargeScoresStayFinite) {
  AttentionShape shape{1, 130, 1, 16, true, 40.0f};
  Passes<float> run(shape, {});
  for (float x : run.out) ASSERT_TRUE(std::isfinite(x));
  for (float x : run.dqkv) ASSERT_TRUE(std::isfinite(x));
}

TEST_F(Attention, BitsDoNotDependOnTheThreads) {
  for (int64_t heads : {1, 4}) {  // fewer heads than threads takes the other path of the gradient
    AttentionShape shape{1, 300, heads, 24, true, 0.2f};
    for (const Documents& documents : {Documents{}, random_documents(shape, 90, 3)}) {
      set_num_threads(1);
      Passes<float> one(shape, {0.1f, 9, 9}, documents);
      for (int threads : {2, 3, 2}) {
        set_num_threads(threads);
        Passes<float> many(shape, {0.1f, 9, 9}, documents);
        EXPECT_EQ(one.out, many.out);
        EXPECT_EQ(one.lse, many.lse);
        EXPECT_EQ(one.dqkv, many.dqkv);
      }
    }
  }
}

template <typename T>
void expect_decode_agrees(int64_t dim, std::vector<int64_t> pieces, double tolerance) {
  int64_t batch = 2, heads = 3, time = 0, capacity = 220, C = heads * dim;
  for (int64_t piece : pieces) time += piece;
  AttentionShape shape{batch, time, heads, dim, true, 0.3f};
  std::vector<T> qkv = random_values<T>(batch * time * 3 * C, 1), cache(size_t(batch * capacity * 2 * C));
  Doubles expected, lse;
  Reference{shape, {}}.forward(doubles(qkv), expected, lse);
  int64_t position = 0;
  for (int64_t piece : pieces) {
    std::vector<T> in, out(size_t(batch * piece * C));
    Doubles part;
    for (int64_t b = 0; b < batch; ++b) {
      auto first = (b * time + position), last = first + piece;
      in.insert(in.end(), qkv.begin() + first * 3 * C, qkv.begin() + last * 3 * C);
      part.insert(part.end(), expected.begin() + first * C, expected.begin() + last * C);
    }
    AttentionShape step = shape;
    step.time = piece;
    std::vector<int32_t> positions(static_cast<size_t>(batch), int32_t(position));
    attention_decode(step, positions.data(), capacity, in.data(), cache.data(), out.data());
    expect_near(out, part, tolerance, fmt::format("decode at {}", position));
    position += piece;
  }
}

TEST_F(Attention, DecodingInPiecesIsTheForwardPass) {
  expect_decode_agrees<float>(64, {1, 1, 1}, 1e-5);
  expect_decode_agrees<float>(20, {70, 1, 1, 63, 2}, 1e-5);
  expect_decode_agrees<Bf16>(32, {100, 1, 1}, 5e-3);
}

// The second of two tokens has no place: it is not stored, and its output is not a number.
TEST_F(Attention, DecodingBeyondTheCacheStoresNothing) {
  std::vector<float> qkv(2 * 6, 1.0f), cache(4 * 4, 0.0f), out(2 * 2);
  int32_t position = 3;
  attention_decode({1, 2, 1, 2, true, 1}, &position, 4, qkv.data(), cache.data(), out.data());
  EXPECT_EQ(std::count(cache.begin(), cache.end(), 1.0f), 4);
  EXPECT_FALSE(std::isnan(out[0]));
  EXPECT_TRUE(std::isnan(out[2]) && std::isnan(out[3]));
}

}  // namespace
}  // namespace tokamak::cpu
