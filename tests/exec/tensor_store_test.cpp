#include "tests/support/host_store.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

class CountingBackend : public HostBackend {
 public:
  std::unique_ptr<Memory> allocate(int64_t bytes) override {
    allocated.push_back(bytes);
    return HostBackend::allocate(bytes);
  }
  std::vector<int64_t> allocated;
};

Graph with_states(const std::vector<std::pair<std::string, ValueType>>& states) {
  Graph graph;
  GraphBuilder g(graph);
  for (const auto& [name, type] : states) g.state(name, type);
  return graph;
}

TEST(TensorStore, MakesTensorsInOnePieceAndKeepsThoseThatAreThere) {
  CountingBackend backend;
  TensorStore store(backend);
  ValueType five{DType::kF32, {5}}, many{DType::kBF16, {7, 9}};
  store.make(with_states({{"a", five}}));
  void* first = store.data("a");
  store.make(with_states({{"c", many}, {"a", five}, {"b", five}}));
  EXPECT_EQ(backend.allocated, (std::vector<int64_t>{64, 64 + 128}));  // each begins at a multiple of 64
  EXPECT_EQ(store.names(), (std::vector<std::string>{"a", "c", "b"}));
  EXPECT_EQ(store.data("a"), first);
  auto *b = static_cast<char*>(store.data("b")), *c = static_cast<char*>(store.data("c"));
  EXPECT_EQ(std::abs(c - b) % 64, 0);
  EXPECT_NE(b, c);
  float values[5] = {1, 2, 3, 4, 5}, read[5] = {};
  store.write("b", values, sizeof values);
  store.read("b", read, sizeof read);
  EXPECT_EQ(read[4], 5);
  EXPECT_EQ(store.bytes(), 20 + 20 + 126);
  EXPECT_THROW(store.make(with_states({{"b", many}})), InternalError);
}

TEST(TensorStore, KeepsTheLayoutsOfItsGraph) {
  HostBackend backend;
  TensorStore store(backend);
  Graph graph;
  GraphBuilder g(graph);
  ValueId w =
      graph.add_argument(Argument::Kind::kParameter, "w", {DType::kF32, {8, 2}}, {Role::kEmbedding, "", {5, 2}});
  g.state_of(w, "m", Role::kMoment);
  store.make(graph);
  EXPECT_EQ(store.spec("w"), (ArgumentSpec{Role::kEmbedding, "", {5, 2}}));
  EXPECT_EQ(store.spec("m.w"), (ArgumentSpec{Role::kMoment, "w", {5, 2}}));
  EXPECT_EQ(store.type("m.w").shape, (Shape{8, 2}));
  Graph other;
  GraphBuilder(other).parameter("w", {DType::kF32, {8, 2}}, Role::kEmbedding);  // the same type, but not padded
  EXPECT_THROW(store.make(other), InternalError);
}

}  // namespace
}  // namespace tokamak::test
