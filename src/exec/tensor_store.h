// Parameters and states of a run, on a backend; on a mesh, a rank's share of them. Tests:
// tests/exec/tensor_store_test.cpp, tests/exec/tensor_shares_test.cpp.
#pragma once

#include "backend/backend.h"
#include "exec/mesh_ranks.h"
#include "graph/part_runs.h"
#include "graph/stored_tensor.h"

#include <map>
#include <string>
#include <vector>

namespace tokamak {

/// Parameters and states by name, shared by the programs of a run (training step, update, evaluation).
class TensorStore {
 public:
  /// `ranks`: those of the mesh of which this one's tensors are the shares; must outlive the store.
  explicit TensorStore(Backend& backend, const MeshRanks* ranks = nullptr) : backend_(backend), ranks_(ranks) {}

  /// Makes those of the graph that do not exist yet, zeroed, in one piece of memory: a GPU gives each piece two MiB or
  /// a multiple of that. Throws InternalError when one exists with another type or spec, or fewer buffers, and when two
  /// have one name.
  void make(const Graph& graph);
  /// The same of a list. Tensors of other stages have no memory here, but are known as others are, and read_whole
  /// gives them.
  void make(const std::vector<StoredTensor>& tensors);
  /// Takes another store's tensor as its own: the same memory.
  void share(const TensorStore& other, const std::string& name);
  bool contains(const std::string& name) const { return tensors_.count(name) > 0; }
  /// Whether this rank has memory for it.
  bool is_here(const std::string& name) const { return find(name).memory != nullptr; }
  int64_t buffers(const std::string& name) const { return find(name).buffers; }
  void* data(const std::string& name, int64_t buffer = 0) const;
  const ValueType& type(const std::string& name) const;
  const ArgumentSpec& spec(const std::string& name) const;
  /// In the order in which they were made, of a graph that of its arguments.
  const std::vector<std::string>& names() const { return names_; }
  int64_t bytes() const;

  /// The first `bytes` bytes of what is stored (all of it, or the rows before padding), or those from `offset` on, from
  /// and to host memory.
  void write(const std::string& name, const void* from, int64_t bytes, int64_t offset = 0);
  void read(const std::string& name, void* to, int64_t bytes, int64_t offset = 0) const;

  /// Those of the mesh; null: one rank.
  const MeshRanks* ranks() const { return ranks_; }
  /// Whether this is the rank that reads and writes files for all.
  bool leads() const { return tokamak::leads(ranks_); }
  /// Where the elements of what is stored lie in the tensor of its global shape, padding left out. Nothing of a tensor
  /// that is not here.
  std::vector<PartRun> share(const std::string& name) const;
  /// Whether this rank has a share that is its own, or of several ranks with the same one it is the first.
  bool counts_here(const std::string& name) const;
  /// Which elements of its share, padding within it among them, this rank writes into a file that all ranks write: of
  /// those with the same share each has a piece, so that all pieces are the whole tensor, once. The first of them takes
  /// what is too small to divide; who that is differs with `turn`, the same on all ranks.
  struct Owned {
    int64_t begin = 0;
    int64_t count = 0;
  };
  Owned owned(const std::string& name, int64_t turn) const;
  /// This rank's share, where it has one, from the whole tensor of its global shape in host memory.
  void write_share(const std::string& name, const void* whole);
  /// The whole tensor of its global shape, for the rank that leads; `to` of the others may be null. All ranks call it.
  void read_whole(const std::string& name, void* to) const;

 private:
  struct Tensor {
    ValueType type;
    ArgumentSpec spec;
    std::shared_ptr<Memory> memory;  // shared with others; null: of another stage
    int64_t offset = 0;
    int64_t buffers = 1;
    int64_t stage = 0;  // the first that has it
    void* data(int64_t buffer = 0) const;
  };
  const Tensor& find(const std::string& name) const;
  bool has(const StoredTensor& asked) const;
  void require_alike(const StoredTensor& asked) const;
  std::vector<PartRun> share_of(const Tensor& tensor, const std::vector<int64_t>& coordinates) const;
  std::vector<std::vector<PartRun>> shares(const Tensor& tensor) const;
  void gather(const Tensor& tensor, std::byte* to) const;

  Backend& backend_;
  const MeshRanks* ranks_;  // null: one
  std::map<std::string, Tensor> tensors_;
  std::vector<std::string> names_;
};

}  // namespace tokamak
