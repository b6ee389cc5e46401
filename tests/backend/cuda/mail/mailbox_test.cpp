// What ranks get by mail, on queues that run in any order.
#include "backend/cuda/nccl/mailbox.h"

#include "base/divide.h"
#include "tests/backend/cuda/mail/fake_queues.h"
#include "tests/support/rank_threads.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tokamak::test {
namespace {

using cuda::MailCut, cuda::Mailbox, cuda::MailGather, cuda::MailSum;
using Floats = std::vector<float>;

// One rank: its mailbox, its queue and what it has been asked for.
struct Rank {
  std::unique_ptr<cuda::NcclRun> run;
  std::unique_ptr<Mailbox> mailbox;
  std::unique_ptr<cuda::StreamHandle> queue;
  std::vector<std::unique_ptr<Floats>> source, from, to;  // of each tensor of each call
};

// What a call is of: the same on all ranks.
struct Call {
  enum class Kind { kAllReduce, kInPlace, kReduceScatter, kGather, kRing, kChain } kind;
  std::vector<int64_t> counts;  // of tensors: elements of a rank's part, or of an all_reduce or a message in all
  // To the next rank, in a chain not from the last to the first.
  bool is_message() const { return kind >= Kind::kRing; }
};

float value_of(int rank, size_t call, size_t tensor, int64_t i) {
  return float((rank * 7 + int(call) * 5 + int(tensor) * 3 + int(i)) % 11);
}

MailCut cut_at(int64_t count, int size) { return {count * 4, count * 4, count * 4 * size}; }
// As NcclCommunicator does it.
MailCut cut_evenly(int64_t count, int size) {
  if (size == 2) return {count * 4, 0, count * 4};
  int64_t piece = round_up(ceil_div(count * 4, int64_t(size)), int64_t(16));
  return {piece, piece, count * 4};
}

class World {
 public:
  World(int size, int64_t mailbox_bytes) : size_(size), ranks_(size_t(size)) {
    with_stores(size, [&](StoreClient& store) {
      act_as_rank(store.rank());
      Rank& rank = ranks_[size_t(store.rank())];
      rank.run = std::make_unique<cuda::NcclRun>(store, cuda::NcclOptions{.mailbox_bytes = mailbox_bytes});
      rank.queue = std::make_unique<cuda::StreamHandle>();
      rank.mailbox = Mailbox::open(*rank.run, "mail", store.rank(), size);
    });
  }
  ~World() {
    for (int r = 0; r < size_; ++r) act_as_rank(r), ranks_[size_t(r)].mailbox = nullptr;
    ranks_.clear();
    forget_queues();
  }

  bool is_open() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.mailbox != nullptr; });
  }

  void ask(const std::vector<Call>& calls) {
    for (int r = 0; r < size_; ++r)
      for (size_t c = 0; c < calls.size(); ++c) ask_rank(r, c, calls[c]);
  }

  void expect(const std::vector<Call>& calls) const {
    for (int r = 0; r < size_; ++r) {
      size_t at = 0;
      for (size_t c = 0; c < calls.size(); ++c)
        for (size_t t = 0; t < calls[c].counts.size(); ++t, ++at)
          EXPECT_EQ(*ranks_[size_t(r)].to[at], expected(r, c, t, calls[c])) << "rank " << r << ", call " << c;
    }
  }

 private:
  int64_t elements_from(const Call& call, int64_t count) const {
    return call.kind == Call::Kind::kReduceScatter ? count * size_ : count;
  }

  void ask_rank(int r, size_t number, const Call& call) {
    Rank& rank = ranks_[size_t(r)];
    std::vector<MailSum> sums;
    std::vector<MailGather> gathers;
    std::vector<Floats*> sent;
    cudaStream_t queue = rank.queue->get();
    for (size_t t = 0; t < call.counts.size(); ++t) {
      int64_t count = call.counts[t];
      auto source = std::make_unique<Floats>(size_t(elements_from(call, count)));
      for (size_t i = 0; i < source->size(); ++i) (*source)[i] = value_of(r, number, t, int64_t(i));
      auto from = std::make_unique<Floats>(source->size(), -2.0f);
      auto to = std::make_unique<Floats>(size_t(call.kind == Call::Kind::kGather ? count * size_ : count), -1.0f);
      float* in = call.kind == Call::Kind::kInPlace ? to->data() : from->data();
      cudaMemcpyAsync(in, source->data(), source->size() * sizeof(float), cudaMemcpyDefault, queue);
      if (call.is_message())
        send_recv(r, call, in, count, to->data());
      else if (call.kind == Call::Kind::kGather)
        gathers.push_back({in, to->data(), cut_at(count, size_)});
      else if (call.kind == Call::Kind::kReduceScatter)
        sums.push_back({in, to->data(), cut_at(count, size_), DType::kF32, false});
      else
        sums.push_back({in, to->data(), cut_evenly(count, size_), DType::kF32, true});
      sent.push_back(from.get());
      rank.source.push_back(std::move(source));
      rank.from.push_back(std::move(from)), rank.to.push_back(std::move(to));
    }
    if (!gathers.empty()) rank.mailbox->gather(gathers, queue);
    if (!sums.empty()) rank.mailbox->add(sums, nullptr, queue);
    for (Floats* floats : sent)
      fill(queue, floats->data(), 0, int64_t(floats->size()) * 4);  // others may not read it now
  }

  // Ranks of a message; -1: there is none.
  int next_of(int r, const Call& call) const { return r + 1 < size_ ? r + 1 : call.kind == Call::Kind::kRing ? 0 : -1; }
  int last_of(int r, const Call& call) const { return r > 0 ? r - 1 : call.kind == Call::Kind::kRing ? size_ - 1 : -1; }

  void send_recv(int r, const Call& call, const float* from, int64_t count, float* to) {
    int next = next_of(r, call), last = last_of(r, call);
    ranks_[size_t(r)].mailbox->send_recv(from, next < 0 ? 0 : count * 4, next, to, last < 0 ? 0 : count * 4, last,
                                         ranks_[size_t(r)].queue->get());
  }

  Floats expected(int r, size_t number, size_t tensor, const Call& call) const {
    Floats values;
    int64_t count = call.counts[tensor];
    if (call.is_message()) {
      int last = last_of(r, call);
      for (int64_t i = 0; i < count; ++i) values.push_back(last < 0 ? -1.0f : value_of(last, number, tensor, i));
      return values;
    }
    if (call.kind == Call::Kind::kGather) {
      for (int from = 0; from < size_; ++from)
        for (int64_t i = 0; i < count; ++i) values.push_back(value_of(from, number, tensor, i));
      return values;
    }
    int64_t begin = call.kind == Call::Kind::kReduceScatter ? r * count : 0;
    for (int64_t i = begin; i < begin + count; ++i) {
      float sum = 0;
      for (int from = 0; from < size_; ++from) sum += value_of(from, number, tensor, i);
      values.push_back(sum);
    }
    return values;
  }

  int size_;
  std::vector<Rank> ranks_;
};

std::vector<Call> random_calls(std::mt19937& random) {
  auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  std::vector<Call> calls;
  for (int c = 0, most = 1 + below(5); c < most; ++c) {
    Call call{Call::Kind(below(6)), {}};
    for (int t = 0, tensors = 1 + below(below(4) ? 3 : 50); t < tensors; ++t)  // more than one launch adds, too
      call.counts.push_back(1 + below(below(2) ? 40 : 3000));
    calls.push_back(std::move(call));
  }
  return calls;
}

class Mail : public testing::TestWithParam<int> {};

TEST_P(Mail, IsRightInAnyOrderOfQueues) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    World world(GetParam(), 4096 * (1 + int64_t(seed % 5)) * (GetParam() - 1));
    ASSERT_TRUE(world.is_open());
    std::vector<Call> calls = random_calls(random);
    world.ask(calls);
    ASSERT_TRUE(run_queues(random)) << "queues wait for each other";
    world.expect(calls);
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Mail, testing::Values(2, 3, 4, 8), testing::PrintToStringParamName());

}  // namespace
}  // namespace tokamak::test
