#include "tests/support/communicator_suite.h"

#include "base/error.h"
#include "ops/host_storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace tokamak::test {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kI32};
constexpr int64_t kSizes[] = {0, 1, 7, 1000};
constexpr int64_t kLarge = (1 << 16) + 3;  // more than one thread's piece of a sum

using Values = std::vector<double>;

// Small whole numbers: their sums over 8 ranks are exact in every type and order.
double value_of(int rank, int64_t i) { return double((rank * 31 + i * 7 + i / 13) % 17 - 8); }

// `count` of the rank's values from element `begin` on.
Values values_of(int rank, int64_t count, int64_t begin = 0) {
  Values values(size_t(std::max<int64_t>(count, 0)));
  for (int64_t i = 0; i < count; ++i) values[size_t(i)] = value_of(rank, begin + i);
  return values;
}

// A tensor in the backend's memory.
class Tensor {
 public:
  Tensor(const SuiteRank& rank, DType dtype, const Values& values)
      : rank_(rank), type_{dtype, {int64_t(values.size())}},
        memory_(rank.backend.allocate(std::max<int64_t>(num_bytes(type_), 1))) {
    std::vector<std::byte> raw = to_storage(HostTensor(type_, values));
    rank.backend.copy_in(memory_->data(), raw.data(), int64_t(raw.size()));
    rank.backend.synchronize();
  }
  Tensor(const SuiteRank& rank, DType dtype, int64_t count) : Tensor(rank, dtype, Values(size_t(count), -99)) {}

  void* at(int64_t element = 0) const {
    return static_cast<std::byte*>(memory_->data()) + element * dtype_bytes(type_.dtype);
  }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> raw(size_t(num_bytes(type_)));
    rank_.backend.copy_out(raw.data(), memory_->data(), int64_t(raw.size()));
    return raw;
  }
  Values values() const { return from_storage(type_, bytes().data()).data; }

 private:
  const SuiteRank& rank_;
  ValueType type_;
  std::unique_ptr<Memory> memory_;
};

std::string where(const Communicator& c, DType dtype, int64_t count) {
  return fmt::format("axis {}, rank {} of {}, {}[{}]", c.axis(), c.rank(), c.size(), dtype_name(dtype), count);
}

// Every type with every size, and a large one.
template <class Body>
void for_types_and_sizes(const Body& body) {
  for (DType dtype : kTypes)
    for (int64_t count : kSizes) body(dtype, count);
  body(DType::kF32, kLarge);
  body(DType::kBF16, kLarge);
}

// Ranks of a communicator have the values of their place in the world, so that a wrong group is noticed.
int identity(const Communicator& c, int rank) { return c.membership().ranks[size_t(rank)]; }
Values mine(const Communicator& c, int64_t count) { return values_of(identity(c, c.rank()), count); }

Values reduced(const Communicator& c, Reduction reduction, int64_t count, int64_t begin = 0) {
  Values all = values_of(identity(c, 0), count, begin);
  for (int r = 1; r < c.size(); ++r)
    for (int64_t i = 0; i < count; ++i) {
      double& x = all[size_t(i)];
      double y = value_of(identity(c, r), begin + i);
      x = reduction == Reduction::kSum ? x + y : std::max(x, y);
    }
  return all;
}

Values piece(const Values& values, int64_t begin, int64_t count) {
  return Values(values.begin() + begin, values.begin() + begin + count);
}

void check_all_reduce(const SuiteRank& rank, Communicator& c, DType dtype, int64_t count) {
  for (Reduction reduction : {Reduction::kSum, Reduction::kMax}) {
    Tensor from(rank, dtype, mine(c, count)), to(rank, dtype, count);
    c.all_reduce(from.at(), to.at(), count, dtype, reduction, rank.queue);
    EXPECT_EQ(to.values(), reduced(c, reduction, count)) << where(c, dtype, count);
    EXPECT_EQ(from.values(), mine(c, count)) << where(c, dtype, count);
    c.all_reduce(from.at(), from.at(), count, dtype, reduction, rank.queue);
    EXPECT_EQ(from.values(), reduced(c, reduction, count)) << "in place, " << where(c, dtype, count);
  }
}

void check_reduce_scatter(const SuiteRank& rank, Communicator& c, DType dtype, int64_t count) {
  for (Reduction reduction : {Reduction::kSum, Reduction::kMax}) {
    Tensor from(rank, dtype, mine(c, count * c.size())), to(rank, dtype, count);
    Values expected = reduced(c, reduction, count, count * c.rank());
    c.reduce_scatter(from.at(), to.at(), count, dtype, reduction, rank.queue);
    EXPECT_EQ(to.values(), expected) << where(c, dtype, count);
    c.reduce_scatter(from.at(), from.at(count * c.rank()), count, dtype, reduction, rank.queue);
    EXPECT_EQ(piece(from.values(), count * c.rank(), count), expected) << "in place, " << where(c, dtype, count);
  }
}

void check_all_gather(const SuiteRank& rank, Communicator& c, DType dtype, int64_t count) {
  Values expected;
  for (int r = 0; r < c.size(); ++r) {
    Values one = values_of(identity(c, r), count);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  Tensor from(rank, dtype, mine(c, count)), to(rank, dtype, count * c.size());
  c.all_gather(from.at(), to.at(), count, dtype, rank.queue);
  EXPECT_EQ(to.values(), expected) << where(c, dtype, count);
  Values alone(size_t(count * c.size()), -99);
  std::copy_n(expected.begin() + count * c.rank(), count, alone.begin() + count * c.rank());
  Tensor both(rank, dtype, alone);
  c.all_gather(both.at(count * c.rank()), both.at(), count, dtype, rank.queue);
  EXPECT_EQ(both.values(), expected) << "in place, " << where(c, dtype, count);
}

void check_all_to_all(const SuiteRank& rank, Communicator& c, DType dtype, int64_t count) {
  Values expected;
  for (int r = 0; r < c.size(); ++r) {
    Values one = values_of(identity(c, r), count, count * c.rank());
    expected.insert(expected.end(), one.begin(), one.end());
  }
  Tensor from(rank, dtype, mine(c, count * c.size())), to(rank, dtype, count * c.size());
  c.all_to_all(from.at(), to.at(), count, dtype, rank.queue);
  EXPECT_EQ(to.values(), expected) << where(c, dtype, count);
}

void check_broadcast(const SuiteRank& rank, Communicator& c, DType dtype, int64_t count) {
  for (int root = 0; root < c.size(); ++root) {
    Tensor data(rank, dtype, mine(c, count));
    c.broadcast(data.at(), count, dtype, root, rank.queue);
    EXPECT_EQ(data.values(), values_of(identity(c, root), count)) << "root " << root << ", " << where(c, dtype, count);
  }
}

// Around the ring: alone, where even ranks send first, and at once.
void check_messages(const SuiteRank& rank, Communicator& c, DType dtype, int64_t count) {
  int next = (c.rank() + 1) % c.size(), last = (c.rank() + c.size() - 1) % c.size();
  Values expected = values_of(identity(c, last), count);
  Tensor from(rank, dtype, mine(c, count)), to(rank, dtype, count), again(rank, dtype, count);
  c.send_recv(from.at(), count, next, to.at(), count, last, dtype, rank.queue);
  EXPECT_EQ(to.values(), expected) << "send_recv, " << where(c, dtype, count);
  if (c.size() % 2 != 0) return;
  if (c.rank() % 2 == 0) c.send(from.at(), count, dtype, next, rank.queue);
  c.recv(again.at(), count, dtype, last, rank.queue);
  if (c.rank() % 2 != 0) c.send(from.at(), count, dtype, next, rank.queue);
  EXPECT_EQ(again.values(), expected) << "send and recv, " << where(c, dtype, count);
}

// What ranks send to each other need not be as long.
void check_unequal_messages(const SuiteRank& rank) {
  Communicator& c = rank.world;
  int next = (c.rank() + 1) % c.size(), last = (c.rank() + c.size() - 1) % c.size();
  Tensor from(rank, DType::kF32, mine(c, 10 + c.rank())), to(rank, DType::kF32, 10 + last);
  c.send_recv(from.at(), 10 + c.rank(), next, to.at(), 10 + last, last, DType::kF32, rank.queue);
  EXPECT_EQ(to.values(), values_of(last, 10 + last));
}

template <auto check>
void all_types_and_sizes(const SuiteRank& rank) {
  for_types_and_sizes([&](DType dtype, int64_t count) { check(rank, rank.world, dtype, count); });
}

// A slot's values: of any size and sign, so that each order of adding them has other bits.
Values slot_values(int slot, int64_t count) {
  Values values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[size_t(i)] = std::sin(double(slot * 1000 + i)) * std::exp2(double((slot * 5 + i) % 11));
  return values;
}

// As stored in the type.
Values rounded(DType dtype, const Values& values) {
  ValueType type{dtype, {int64_t(values.size())}};
  return from_storage(type, to_storage(HostTensor(type, values)).data()).data;
}

// Slots [first, first + 2^level), each addition rounded as the types' arithmetic does it.
Values subtree_sum(DType dtype, int first, int level, int64_t count) {
  if (level == 0) return rounded(dtype, slot_values(first, count));
  Values left = subtree_sum(dtype, first, level - 1, count);
  Values right = subtree_sum(dtype, first + (1 << (level - 1)), level - 1, count);
  for (size_t i = 0; i < left.size(); ++i) left[i] = double(float(left[i]) + float(right[i]));
  return rounded(dtype, left);
}

void check_ordered(const SuiteRank& rank, DType dtype, int level, int64_t count) {
  Communicator& c = rank.world;
  SlotTree tree{1 << level, c.size()};
  if (tree.slots < c.size()) return;
  std::vector<std::unique_ptr<Tensor>> parts;
  std::vector<const void*> pointers;
  for (const Subtree& part : tree.parts(c.rank())) {
    parts.push_back(std::make_unique<Tensor>(rank, dtype, subtree_sum(dtype, part.first, part.level, count)));
    pointers.push_back(parts.back()->at());
  }
  Values expected = subtree_sum(dtype, 0, level, count);
  Tensor to(rank, dtype, count);
  auto scratch = rank.backend.allocate(c.ordered_scratch_bytes(count, dtype, tree));
  c.ordered_all_reduce(pointers, to.at(), count, dtype, tree, scratch->data(), rank.queue);
  EXPECT_EQ(to.values(), expected) << tree.slots << " slots, " << where(c, dtype, count);
  int64_t share = count / c.size();
  Tensor own(rank, dtype, share);
  c.ordered_reduce_scatter(pointers, own.at(), share, dtype, tree, scratch->data(), rank.queue);
  EXPECT_EQ(own.values(), piece(expected, share * c.rank(), share))
      << tree.slots << " slots, " << where(c, dtype, count);
  if (parts.empty()) return;
  c.ordered_all_reduce(pointers, parts[0]->at(), count, dtype, tree, scratch->data(), rank.queue);
  EXPECT_EQ(parts[0]->values(), expected) << "in place, " << tree.slots << " slots, " << where(c, dtype, count);
}

void ordered_sums(const SuiteRank& rank) {
  for (int level : {0, 1, 2, 3, 4})
    for (int64_t count : {int64_t(0), int64_t(1), int64_t(7), int64_t(1000)}) {
      check_ordered(rank, DType::kF32, level, count);
      check_ordered(rank, DType::kBF16, level, count);
      check_ordered(rank, DType::kF16, level, count);
    }
  check_ordered(rank, DType::kF32, 3, kLarge);
}

std::unique_ptr<Communicator> split_off(Communicator& c, const std::string& axis,
                                        const std::function<bool(int)>& with) {
  std::vector<int64_t> members;
  for (int r = 0; r < c.size(); ++r)
    if (with(r)) members.push_back(r);
  return c.split(axis, members);
}

void check_everything(const SuiteRank& rank, Communicator& c) {
  check_all_reduce(rank, c, DType::kF32, 100);
  check_reduce_scatter(rank, c, DType::kBF16, 10);
  check_all_gather(rank, c, DType::kI32, 10);
  check_all_to_all(rank, c, DType::kF16, 10);
  check_broadcast(rank, c, DType::kF32, 10);
  check_messages(rank, c, DType::kF32, 10);
}

// Rows and columns of a mesh, groups of one, groups of groups; the world goes on beside them.
void groups(const SuiteRank& rank) {
  Communicator& world = rank.world;
  int me = world.rank();
  auto halves = split_off(world, "half", [&](int r) { return r / 2 == me / 2; });
  auto stripes = split_off(world, "stripe", [&](int r) { return r % 2 == me % 2; });
  auto single = split_off(world, "single", [&](int r) { return r == me; });
  auto again = split_off(*stripes, "again", [&](int r) { return r % 2 == stripes->rank() % 2; });
  for (Communicator* c : {halves.get(), stripes.get(), single.get(), again.get(), &world}) check_everything(rank, *c);
  std::vector<int64_t> reversed(size_t(world.size()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  auto backwards = world.split("backwards", reversed);
  EXPECT_EQ(backwards->rank(), world.size() - 1 - me);
  check_everything(rank, *backwards);
}

// Axes are used in turns, and not as often by all groups of an axis.
void axes_in_turns(const SuiteRank& rank) {
  Communicator& world = rank.world;
  int me = world.rank();
  auto tensor = split_off(world, "tensor", [&](int r) { return r / 2 == me / 2; });
  auto data = split_off(world, "data", [&](int r) { return r % 2 == me % 2; });
  for (int round = 0; round < 6; ++round) {
    for (int extra = 0; extra <= me / 2; ++extra) check_all_reduce(rank, *tensor, DType::kF32, 5 + extra);
    for (int extra = 0; extra <= me % 2; ++extra) check_all_gather(rank, *data, DType::kF32, 5 + extra);
    check_all_to_all(rank, *tensor, DType::kI32, 3);
    if (round % 3 == 0) world.barrier(rank.queue);
  }
}

void repeated(const SuiteRank& rank) {
  Tensor x(rank, DType::kF32, Values(100, 1.0));
  for (int round = 0; round < 100; ++round)
    rank.world.all_reduce(x.at(), x.at(), 100, DType::kF32, Reduction::kMax, rank.queue);
  rank.world.all_reduce(x.at(), x.at(), 100, DType::kF32, Reduction::kSum, rank.queue);
  EXPECT_EQ(x.values(), Values(100, double(rank.world.size())));
}

// Sums and gatherings, one of them in place.
void grouped(const SuiteRank& rank) {
  Communicator& c = rank.world;
  constexpr int64_t kFew = 3, kSome = 700;
  Values here(size_t(kSome * c.size()), 5.0), few, some;
  for (int r = 0; r < c.size(); ++r)
    for (auto [values, count] : {std::pair(&few, kFew), std::pair(&some, kSome)})
      for (double value : values_of(r, count)) values->push_back(value);
  std::copy_n(some.begin() + kSome * c.rank(), kSome, here.begin() + kSome * c.rank());
  Tensor x(rank, DType::kF32, Values(1000, 1.0)), y(rank, DType::kBF16, values_of(c.rank(), kFew));
  Tensor gathered(rank, DType::kBF16, kFew * c.size()), in_place(rank, DType::kF32, here);
  c.group([&] {
    c.all_reduce(x.at(), x.at(), 1000, DType::kF32, Reduction::kSum, rank.queue);
    c.all_gather(y.at(), gathered.at(), kFew, DType::kBF16, rank.queue);
    c.all_gather(in_place.at(kSome * c.rank()), in_place.at(), kSome, DType::kF32, rank.queue);
  });
  c.group([] {});
  EXPECT_EQ(x.values(), Values(1000, double(c.size())));
  EXPECT_EQ(gathered.values(), few);
  EXPECT_EQ(in_place.values(), some);
}

void texts(const SuiteRank& rank) {
  auto said = rank.world.exchange(std::string(size_t(rank.world.rank()) * 1000, char('a' + rank.world.rank())));
  ASSERT_EQ(int(said.size()), rank.world.size());
  for (int r = 0; r < rank.world.size(); ++r) EXPECT_EQ(said[size_t(r)], std::string(size_t(r) * 1000, char('a' + r)));
}

constexpr SuiteCase kCases[] = {
    {"AllReduce", all_types_and_sizes<check_all_reduce>},
    {"ReduceScatter", all_types_and_sizes<check_reduce_scatter>},
    {"AllGather", all_types_and_sizes<check_all_gather>},
    {"AllToAll", all_types_and_sizes<check_all_to_all>},
    {"Broadcast", all_types_and_sizes<check_broadcast>},
    {"Messages", all_types_and_sizes<check_messages>},
    {"UnequalMessages", check_unequal_messages},
    {"OrderedSums", ordered_sums},
    {"Groups", groups},
    {"AxesInTurns", axes_in_turns},
    {"Repeated", repeated},
    {"Grouped", grouped},
    {"Texts", texts},
};

// The last rank does something else than the others.
bool is_odd_one(const SuiteRank& rank) { return rank.world.rank() == rank.world.size() - 1; }

void other_operation(const SuiteRank& rank) {
  Tensor from(rank, DType::kF32, 8), to(rank, DType::kF32, 8 * rank.world.size());
  if (is_odd_one(rank)) return rank.world.all_gather(from.at(), to.at(), 8, DType::kF32, rank.queue);
  rank.world.all_reduce(from.at(), to.at(), 8, DType::kF32, Reduction::kSum, rank.queue);
}

void other_size(const SuiteRank& rank) {
  Tensor x(rank, DType::kF32, 9);
  rank.world.all_reduce(x.at(), x.at(), is_odd_one(rank) ? 9 : 8, DType::kF32, Reduction::kSum, rank.queue);
}

void other_type(const SuiteRank& rank) {
  Tensor x(rank, DType::kF32, 8);
  rank.world.all_reduce(x.at(), x.at(), 8, is_odd_one(rank) ? DType::kI32 : DType::kF32, Reduction::kSum, rank.queue);
}

void other_reduction(const SuiteRank& rank) {
  Tensor x(rank, DType::kF32, 8);
  rank.world.all_reduce(x.at(), x.at(), 8, DType::kF32, is_odd_one(rank) ? Reduction::kMax : Reduction::kSum,
                        rank.queue);
}

void other_root(const SuiteRank& rank) {
  Tensor x(rank, DType::kF32, 8);
  rank.world.broadcast(x.at(), 8, DType::kF32, is_odd_one(rank) ? 1 : 0, rank.queue);
}

void all_send_first(const SuiteRank& rank) {
  Communicator& c = rank.world;
  Tensor x(rank, DType::kF32, 8);
  c.send(x.at(), 8, DType::kF32, (c.rank() + 1) % c.size(), rank.queue);
  c.recv(x.at(), 8, DType::kF32, (c.rank() + c.size() - 1) % c.size(), rank.queue);
}

void shorter_message(const SuiteRank& rank) {
  Communicator& c = rank.world;
  Tensor x(rank, DType::kF32, 8);
  if (c.rank() == 0) c.send(x.at(), 7, DType::kF32, 1, rank.queue);
  if (c.rank() == 1) c.recv(x.at(), 8, DType::kF32, 0, rank.queue);
  c.barrier(rank.queue);
}

void rank_aborts(const SuiteRank& rank) {
  if (is_odd_one(rank)) rank.world.abort("rank 1 of this test gave up");
  Tensor x(rank, DType::kF32, 8);
  rank.world.all_reduce(x.at(), x.at(), 8, DType::kF32, Reduction::kSum, rank.queue);
}

void other_split(const SuiteRank& rank) {
  std::vector<int64_t> members(size_t(rank.world.size()));
  std::iota(members.begin(), members.end(), 0);
  auto c = rank.world.split(is_odd_one(rank) ? "data" : "tensor", members);
  c->barrier(rank.queue);
}

const WrongCase kWrong[] = {
    {"OtherOperation", other_operation, {"[world]", "all_reduce(f32[8], sum) on rank", "all_gather(f32[8]) on rank"}},
    {"OtherSize", other_size, {"all_reduce(f32[8], sum) on rank", "all_reduce(f32[9], sum) on rank"}},
    {"OtherType", other_type, {"all_reduce(f32[8], sum) on rank", "all_reduce(i32[8], sum) on rank"}},
    {"OtherReduction", other_reduction, {"all_reduce(f32[8], sum) on rank", "all_reduce(f32[8], max) on rank"}},
    {"OtherRoot", other_root, {"broadcast(f32[8] of rank 0) on rank", "broadcast(f32[8] of rank 1) on rank"}},
    {"AllSendFirst", all_send_first, {"send(f32[8] to rank"}},
    {"ShorterMessage", shorter_message, {"send(f32[7] to rank 1) on rank 0", "recv(f32[8] from rank 0) on rank 1"}},
    {"RankAborts", rank_aborts, {"rank 1 of this test gave up"}},
    {"OtherSplit", other_split, {"split('tensor' 0 1", "split('data' 0 1"}},
};

}  // namespace

std::span<const SuiteCase> communicator_suite() { return kCases; }
std::span<const WrongCase> wrong_cases() { return kWrong; }

void expect_communication_error(const WrongCase& wrong, const std::function<void()>& run) {
  try {
    run();
    ADD_FAILURE() << wrong.name << ": a rank noticed nothing";
  } catch (const CommunicationError& error) {
    for (const std::string& piece : wrong.expected)
      EXPECT_NE(std::string_view(error.what()).find(piece), std::string::npos)
          << wrong.name << ": a rank says " << error.what() << "\nlacks: " << piece;
  }
}

}  // namespace tokamak::test
