// Tensors of which every rank stores a share, from and to whole ones.
#include "exec/tensor_store.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>

namespace tokamak {
namespace {

const Mesh kMesh{{{"data", 2}, {"tensor", 2}}};

// A parameter 'w' of which a rank stores `stored`.
Graph graph_of(const Shape& stored, const Shape& global, std::vector<Cut> cuts, Padding padding = {}) {
  Graph graph("store");
  ArgumentSpec spec = default_spec(Argument::Kind::kParameter, {DType::kF32, stored});
  spec.role = Role::kMatrix;
  spec.padding = padding;
  spec.global = global;
  spec.cuts = std::move(cuts);
  graph.add_argument(Argument::Kind::kParameter, "w", {DType::kF32, stored}, spec);
  return graph;
}

std::vector<float> numbers(const Shape& shape) {
  std::vector<float> values(size_t(num_elements(shape)));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

void expect_round_trip(const Graph& graph) {
  const ArgumentSpec& spec = graph.arguments()[0].spec;
  run_ranks(4, [&](Communicator& world) {
    MeshRanks ranks(kMesh, world);
    auto backend = cpu::make_backend();
    TensorStore store(*backend, &ranks);
    store.make(graph);
    std::vector<float> written = numbers(spec.global), read(written.size(), -1.0f);
    store.write_share("w", written.data());
    store.read_whole("w", store.leads() ? read.data() : nullptr);
    if (store.leads()) EXPECT_EQ(read, written);
  });
}

TEST(TensorShares, ComeTogetherAgain) {
  expect_round_trip(graph_of({4, 6}, {4, 6}, {}));
  expect_round_trip(graph_of({2, 6}, {4, 6}, {{"data", 2, 0, 1}}));
  expect_round_trip(graph_of({4, 3}, {4, 6}, {{"tensor", 2, 1, 3}}));
  expect_round_trip(graph_of({2, 3}, {4, 6}, {{"tensor", 2, 1, 1}, {"data", 2, 0, 1}}));
  expect_round_trip(graph_of({2}, {8}, {{"tensor", 2, 0, 2}, {"data", 2, 0, 1}}));
}

TEST(TensorShares, LeavePaddingOut) {
  expect_round_trip(graph_of({4, 3}, {5, 3}, {{"tensor", 2, 0, 1}}));
  // One rank has nothing else.
  expect_round_trip(graph_of({2, 3}, {3, 3}, {{"tensor", 2, 0, 1}, {"data", 2, 0, 2}}));
  // Behind each of two parts, and in each row behind each of three.
  expect_round_trip(graph_of({4, 3}, {6, 3}, {{"tensor", 2, 0, 1}}, {.dim = 0, .parts = 2}));
  expect_round_trip(graph_of({2, 3}, {6, 3}, {{"tensor", 2, 0, 1}, {"data", 2, 0, 2}}, {.dim = 0, .parts = 2}));
  expect_round_trip(graph_of({2, 6}, {2, 9}, {{"tensor", 2, 1, 3}}, {.dim = 1, .parts = 3}));
  expect_round_trip(graph_of({1, 6}, {2, 9}, {{"tensor", 2, 1, 3}, {"data", 2, 0, 1}}, {.dim = 1, .parts = 3}));
}

void expect_on_ranks(const Graph& graph, const std::vector<float>& first, const std::vector<float>& second) {
  run_ranks(4, [&](Communicator& world) {
    MeshRanks ranks(kMesh, world);
    auto backend = cpu::make_backend();
    TensorStore store(*backend, &ranks);
    store.make(graph);
    store.write_share("w", numbers(graph.arguments()[0].spec.global).data());
    std::vector<float> got(12);
    store.read("w", got.data(), 48);
    EXPECT_EQ(got, world.rank() % 2 == 0 ? first : second);
  });
}

TEST(TensorShares, AreWhereTheWholeHasThem) {
  expect_on_ranks(graph_of({4, 3}, {5, 3}, {{"tensor", 2, 0, 1}}), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                  {13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  expect_on_ranks(graph_of({2, 6}, {2, 9}, {{"tensor", 2, 1, 3}}, {.dim = 1, .parts = 3}),
                  {1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17}, {3, 0, 6, 0, 9, 0, 12, 0, 15, 0, 18, 0});
  expect_on_ranks(graph_of({4, 3}, {6, 3}, {{"tensor", 2, 0, 1}}, {.dim = 0, .parts = 2}),
                  {1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0}, {10, 11, 12, 13, 14, 15, 16, 17, 18, 0, 0, 0});
}

// Of a pipeline's stages: known to all ranks, stored by those of some.
TEST(TensorShares, MayBeOfOtherStages) {
  Mesh mesh{{{"pipe", 2}, {"data", 2}}};
  ArgumentSpec whole{Role::kMatrix, "", {4, 6}}, cut = whole;
  cut.cuts = {{"data", 2, 0, 1}};
  std::vector<StoredTensor> tensors = {{"first", {DType::kF32, {4, 6}}, whole, 1, {0}},
                                       {"second", {DType::kF32, {2, 6}}, cut, 1, {1}},
                                       {"last", {DType::kF32, {4, 6}}, whole, 1, {1}},
                                       {"both", {DType::kF32, {4, 6}}, whole, 1, {0, 1}}};
  run_ranks(4, [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    auto backend = cpu::make_backend();
    TensorStore store(*backend, &ranks);
    store.make(tensors);
    EXPECT_EQ(store.names(), (std::vector<std::string>{"first", "second", "last", "both"}));
    EXPECT_EQ(store.is_here("second"), world.rank() >= 2);
    EXPECT_EQ(store.bytes(), world.rank() < 2 ? 2 * 96 : 48 + 2 * 96);
    for (const StoredTensor& tensor : tensors) {
      std::vector<float> written = numbers({4, 6}), read(written.size(), -1.0f);
      store.write_share(tensor.name, written.data());
      store.read_whole(tensor.name, store.leads() ? read.data() : nullptr);
      if (store.leads()) EXPECT_EQ(read, written) << tensor.name;
    }
  });
}

// What ranks write of a tensor of `elements`, added up by element: each is written once, by whoever has it.
void expect_one_owner(const Mesh& mesh, const StoredTensor& tensor, int64_t owners) {
  std::vector<int> written(size_t(num_elements(tensor.spec.global)));
  for (int64_t turn : {0, 1}) {
    std::atomic<int64_t> ranks_that_write = 0;
    std::mutex mutex;
    run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
      MeshRanks ranks(mesh, world);
      auto backend = cpu::make_backend();
      TensorStore store(*backend, &ranks);
      store.make({tensor});
      auto [begin, count] = store.owned("w", turn);
      ranks_that_write += count > 0;
      std::lock_guard lock(mutex);
      for (const PartRun& run : store.share("w"))
        for (int64_t i = std::max(run.part, begin); i < std::min(run.part + run.count, begin + count); ++i)
          ++written[size_t(run.whole + i - run.part)];
    });
    EXPECT_EQ(ranks_that_write, owners);
  }
  EXPECT_EQ(written, std::vector<int>(written.size(), 2));
}

TEST(TensorShares, EachElementHasOneOwner) {
  Mesh mesh{{{"pipe", 2}, {"data", 3}, {"tensor", 2}}};
  ArgumentSpec whole{Role::kMatrix, "", {300, 257}}, rows = whole, columns = whole, all = whole;
  rows.cuts = {{"data", 3, 0, 1}};
  columns.global = {300, 256};
  columns.cuts = {{"tensor", 2, 1, 1}};
  all.cuts = {{"tensor", 2, 0, 1}, {"data", 3, 0, 2}};
  ArgumentSpec small{Role::kVector, "", {7}}, padded{Role::kEmbedding, "", {5, 3}};
  padded.cuts = {{"data", 3, 0, 1}};
  expect_one_owner(mesh, {"w", {DType::kF32, {300, 257}}, whole, 1, {0, 1}}, 5);  // of six pieces that are large enough
  expect_one_owner(mesh, {"w", {DType::kF32, {100, 257}}, rows, 1, {1}}, 6);
  expect_one_owner(mesh, {"w", {DType::kF32, {300, 128}}, columns, 1, {0}}, 6);
  expect_one_owner(mesh, {"w", {DType::kF32, {50, 257}}, all, 1, {}}, 6);
  expect_one_owner(mesh, {"w", {DType::kF32, {7}}, small, 1, {}}, 1);
  expect_one_owner(mesh, {"w", {DType::kF32, {2, 3}}, padded, 1, {}}, 3);
}

TEST(TensorShares, HaveBuffersOfTheirOwn) {
  auto backend = cpu::make_backend();
  TensorStore store(*backend);
  store.make({{"act", {DType::kF32, {3}}, {Role::kActivation, "", {3}}, 2}, {"w", {DType::kF32, {3}}, {}, 1}});
  EXPECT_EQ(store.buffers("act"), 2);
  std::set<void*> places = {store.data("act", 0), store.data("act", 1), store.data("w")};
  EXPECT_EQ(places.size(), 3u);
  auto *first = static_cast<std::byte*>(store.data("act", 0)), *second = static_cast<std::byte*>(store.data("act", 1));
  EXPECT_EQ((second - first) % 64, 0) << "kernels load vectors from where a buffer begins";
  EXPECT_ANY_THROW(store.data("act", 2));
  store.make({{"act", {DType::kF32, {3}}, {Role::kActivation, "", {3}}}});  // who needs one has one
  EXPECT_ANY_THROW(store.make({{"act", {DType::kF32, {3}}, {Role::kActivation, "", {3}}, 3}}));
}

TEST(TensorShares, HaveOneNameEach) {
  auto backend = cpu::make_backend();
  TensorStore store(*backend);
  StoredTensor w{"w", {DType::kF32, {3}}, {}};
  EXPECT_ANY_THROW(store.make({w, w}));
  EXPECT_FALSE(store.contains("w"));
}

// More than is sent at a time.
TEST(TensorShares, MayBeLarge) {
  int64_t columns = int64_t(9) << 18;
  expect_round_trip(graph_of({2, columns}, {4, columns}, {{"data", 2, 0, 1}}));
}

}  // namespace
}  // namespace tokamak
