#include "exec/tensor_store.h"

#include "base/divide.h"
#include "base/error.h"
#include "passes/step_mesh.h"
#include "plan/plan.h"  // kArenaAlignment

#include <algorithm>
#include <cstring>

namespace tokamak {
namespace {

// What all ranks together send at a time when a tensor is gathered.
constexpr int64_t kGatheredBytes = int64_t(64) << 20;

// Elements of a tensor that several ranks have: fewer are not divided among them.
constexpr int64_t kLeastOwned = 1 << 14;

int64_t buffer_bytes(const ValueType& type) { return round_up(num_bytes(type), kArenaAlignment); }

// Elements [begin, end) of a share, to where they lie in the whole.
void place(const std::vector<PartRun>& share, int64_t begin, int64_t end, const std::byte* from, std::byte* whole,
           int64_t size) {
  auto run = std::upper_bound(share.begin(), share.end(), begin,
                              [](int64_t at, const PartRun& r) { return at < r.part + r.count; });
  for (; run != share.end() && run->part < end; ++run) {
    int64_t first = std::max(run->part, begin), last = std::min(run->part + run->count, end);
    std::memcpy(whole + (run->whole + first - run->part) * size, from + (first - begin) * size,
                size_t((last - first) * size));
  }
}

}  // namespace

void TensorStore::make(const Graph& graph) {
  std::vector<StoredTensor> tensors;
  for (const Argument& argument : graph.arguments())
    if (argument.kind != Argument::Kind::kInput)
      tensors.push_back({argument.name, graph.type(argument.value), argument.spec});
  make(tensors);
}

void TensorStore::make(const std::vector<StoredTensor>& tensors) {
  std::map<std::string, Tensor> made;
  std::vector<std::string> names;
  int64_t total = 0;
  for (const StoredTensor& asked : tensors) {
    if (contains(asked.name)) {
      require_alike(asked);
      continue;
    }
    Tensor tensor{asked.type, asked.spec, nullptr, total, asked.buffers, asked.stages.empty() ? 0 : asked.stages[0]};
    TOKAMAK_CHECK(made.emplace(asked.name, tensor).second, "two tensors are called '{}'", asked.name);
    names.push_back(asked.name);
    if (has(asked)) total += asked.buffers * buffer_bytes(asked.type);
  }
  if (made.empty()) return;
  std::shared_ptr<Memory> memory = backend_.allocate(total);
  for (const StoredTensor& asked : tensors)
    if (auto at = made.find(asked.name); at != made.end() && has(asked)) at->second.memory = memory;
  names_.insert(names_.end(), names.begin(), names.end());
  tensors_.merge(made);
}

bool TensorStore::has(const StoredTensor& asked) const {
  int64_t here = ranks_ ? ranks_->coordinate(kPipeAxis) : 0;
  return asked.stages.empty() || std::find(asked.stages.begin(), asked.stages.end(), here) != asked.stages.end();
}

void TensorStore::require_alike(const StoredTensor& asked) const {
  const Tensor& known = find(asked.name);
  TOKAMAK_CHECK(known.type == asked.type && known.spec == asked.spec && known.buffers >= asked.buffers,
                "tensor '{}' is {} with {} buffers and was asked for as {} with {}", asked.name, to_string(known.type),
                known.buffers, to_string(asked.type), asked.buffers);
}

void TensorStore::share(const TensorStore& other, const std::string& name) {
  bool is_new = tensors_.emplace(name, other.find(name)).second;
  TOKAMAK_CHECK(is_new, "there is a tensor '{}' already", name);
  names_.push_back(name);
}

const TensorStore::Tensor& TensorStore::find(const std::string& name) const {
  auto at = tensors_.find(name);
  TOKAMAK_CHECK(at != tensors_.end(), "there is no tensor '{}'", name);
  return at->second;
}

void* TensorStore::Tensor::data(int64_t buffer) const {
  TOKAMAK_CHECK(memory && buffer < buffers, "buffer {} of a tensor with {}", buffer, memory ? buffers : 0);
  return static_cast<char*>(memory->data()) + offset + buffer * buffer_bytes(type);
}

void* TensorStore::data(const std::string& name, int64_t buffer) const { return find(name).data(buffer); }

const ValueType& TensorStore::type(const std::string& name) const { return find(name).type; }

const ArgumentSpec& TensorStore::spec(const std::string& name) const { return find(name).spec; }

int64_t TensorStore::bytes() const {
  int64_t total = 0;
  for (const auto& [name, tensor] : tensors_)
    if (tensor.memory) total += tensor.buffers * num_bytes(tensor.type);
  return total;
}

void TensorStore::write(const std::string& name, const void* from, int64_t bytes, int64_t offset) {
  const Tensor& tensor = find(name);
  TOKAMAK_CHECK(offset + bytes <= num_bytes(tensor.type), "'{}' has {} bytes, not {}", name, num_bytes(tensor.type),
                offset + bytes);
  backend_.copy_in(static_cast<char*>(tensor.data()) + offset, from, bytes);
}

void TensorStore::read(const std::string& name, void* to, int64_t bytes, int64_t offset) const {
  const Tensor& tensor = find(name);
  TOKAMAK_CHECK(offset + bytes <= num_bytes(tensor.type), "'{}' has {} bytes, not {}", name, num_bytes(tensor.type),
                offset + bytes);
  backend_.copy_out(to, static_cast<const char*>(tensor.data()) + offset, bytes);
}

std::vector<PartRun> TensorStore::share_of(const Tensor& tensor, const std::vector<int64_t>& coordinates) const {
  int64_t elements = num_elements(tensor.spec.global);
  if (tensor.spec.cuts.empty()) return {{0, 0, elements}};
  Shape whole = whole_shape(tensor.type.shape, tensor.spec.cuts);
  std::vector<PartRun> runs = part_runs(whole, tensor.spec.cuts, ranks_->mesh(), coordinates);
  return without_padding(runs, num_elements(whole), elements, parts_padded(whole, tensor.spec.padding));
}

std::vector<PartRun> TensorStore::share(const std::string& name) const {
  if (!is_here(name)) return {};
  return share_of(find(name), ranks_ ? ranks_->coordinates() : std::vector<int64_t>{});
}

bool TensorStore::counts_here(const std::string& name) const {
  const Tensor& tensor = find(name);
  if (!ranks_ || !tensor.memory) return tensor.memory != nullptr;
  for (const MeshAxis& axis : ranks_->mesh().axes) {
    bool cuts = std::ranges::any_of(tensor.spec.cuts, [&](const Cut& cut) { return cut.axis == axis.name; });
    int64_t first = axis.name == kPipeAxis ? tensor.stage : 0;
    if (!cuts && ranks_->coordinate(axis.name) != first) return false;
  }
  return true;
}

TensorStore::Owned TensorStore::owned(const std::string& name, int64_t turn) const {
  const Tensor& tensor = find(name);
  std::vector<PartRun> runs = share(name);
  int64_t elements = runs.empty() ? 0 : runs.back().part + runs.back().count, copy = 0, copies = 1;
  if (!ranks_ || elements == 0) return {0, elements};
  for (const MeshAxis& axis : ranks_->mesh().axes) {
    bool cuts = std::ranges::any_of(tensor.spec.cuts, [&](const Cut& cut) { return cut.axis == axis.name; });
    if (axis.name == kPipeAxis && ranks_->coordinate(axis.name) != tensor.stage) return {};
    if (cuts || axis.name == kPipeAxis) continue;
    copy = copy * axis.size + ranks_->coordinate(axis.name);
    copies *= axis.size;
  }
  int64_t piece = std::max(ceil_div(elements, copies), kLeastOwned);
  int64_t begin = std::min((copy + turn) % copies * piece, elements);
  return {begin, std::min(piece, elements - begin)};
}

void TensorStore::write_share(const std::string& name, const void* whole) {
  const Tensor& tensor = find(name);
  int64_t size = dtype_bytes(tensor.type.dtype);
  auto* from = static_cast<const std::byte*>(whole);
  std::vector<PartRun> runs = share(name);
  if (!is_here(name)) return;
  if (runs.size() == 1) return write(name, from + runs[0].whole * size, runs[0].count * size);
  std::vector<std::byte> part(size_t(num_bytes(tensor.type)));
  copy_runs(runs, size, from, part.data());
  write(name, part.data(), int64_t(part.size()));
}

void TensorStore::read_whole(const std::string& name, void* to) const {
  const Tensor& tensor = find(name);
  if (!tensor.spec.cuts.empty() || tensor.stage > 0) return gather(tensor, static_cast<std::byte*>(to));
  if (leads()) read(name, to, num_elements(tensor.spec.global) * dtype_bytes(tensor.type.dtype));
}

// Of all ranks; of those that have the tensor, the ranks of one stage are enough.
std::vector<std::vector<PartRun>> TensorStore::shares(const Tensor& tensor) const {
  const Mesh& mesh = ranks_->mesh();
  std::vector<std::vector<PartRun>> shares;
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
    std::vector<int64_t> coordinates = mesh.coordinates(rank);
    bool has = mesh.size(kPipeAxis) == 1 || coordinates[mesh.find(kPipeAxis)] == tensor.stage;
    shares.push_back(has ? share_of(tensor, coordinates) : std::vector<PartRun>{});
  }
  return shares;
}

// All ranks' pieces of their shares, and so on until there is nothing left.
void TensorStore::gather(const Tensor& tensor, std::byte* to) const {
  Communicator& world = ranks_->world();
  int64_t ranks = world.size(), size = dtype_bytes(tensor.type.dtype), elements = num_elements(tensor.type.shape);
  int64_t piece = std::clamp<int64_t>(kGatheredBytes / (ranks * size), 1, std::max<int64_t>(elements, 1));
  std::vector<std::vector<PartRun>> shares = leads() ? this->shares(tensor) : std::vector<std::vector<PartRun>>{};
  std::unique_ptr<Memory> received = backend_.allocate(ranks * piece * size);
  std::vector<std::byte> host(leads() ? size_t(ranks * piece * size) : 0);
  for (int64_t begin = 0; begin < elements; begin += piece) {
    int64_t count = std::min(piece, elements - begin);
    // A rank that has nothing of it sends what is there.
    std::byte* mine = tensor.memory ? static_cast<std::byte*>(tensor.data()) + begin * size
                                    : static_cast<std::byte*>(received->data()) + world.rank() * count * size;
    world.all_gather(mine, received->data(), count, tensor.type.dtype, backend_.queue(0));
    if (!leads()) continue;
    backend_.copy_out(host.data(), received->data(), ranks * count * size);
    for (int64_t rank = 0; rank < ranks; ++rank)
      place(shares[size_t(rank)], begin, begin + count, host.data() + rank * count * size, to, size);
  }
  backend_.synchronize();  // before the memory goes
  world.check();
}

}  // namespace tokamak
