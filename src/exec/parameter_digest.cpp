#include "exec/parameter_digest.h"

#include <cstring>

namespace tokamak {
namespace {

// Of several ranks that have the same share, one.
std::vector<DigestPiece> own_pieces(const TensorStore& store) {
  std::vector<DigestPiece> pieces;
  for (const std::string& name : store.names()) {
    if (!is_parameter(store.spec(name).role) || !store.counts_here(name)) continue;
    std::vector<DigestPiece> some =
        digest_pieces(store.data(name), dtype_bytes(store.type(name).dtype), digest_salt(name), store.share(name));
    pieces.insert(pieces.end(), some.begin(), some.end());
  }
  return pieces;
}

}  // namespace

ParameterDigest::ParameterDigest(const TensorStore& store, Backend& backend, const MeshRanks* ranks)
    : backend_(backend), ranks_(ranks), kernel_(backend.compile_digest(own_pieces(store))),
      of_ranks_(backend.allocate(int64_t(sizeof(uint64_t)) * (ranks ? ranks->world().size() : 1))) {}

std::unique_ptr<Readback> ParameterDigest::take() {
  auto* all = static_cast<std::byte*>(of_ranks_->data());
  int64_t ranks = ranks_ ? ranks_->world().size() : 1, rank = ranks_ ? ranks_->world().rank() : 0;
  void* mine = all + rank * int64_t(sizeof(uint64_t));
  kernel_->run({}, std::span<void* const>(&mine, 1));
  constexpr int64_t kWords = sizeof(uint64_t) / sizeof(int32_t);
  if (ranks > 1) ranks_->world().all_gather(mine, all, kWords, DType::kI32, backend_.queue(0));
  return backend_.read_later(all, ranks * int64_t(sizeof(uint64_t)));
}

uint64_t ParameterDigest::sum(std::span<const std::byte> of_ranks) {
  uint64_t sum = 0;
  for (size_t at = 0; at < of_ranks.size(); at += sizeof(uint64_t)) {
    uint64_t part = 0;
    std::memcpy(&part, of_ranks.data() + at, sizeof part);
    sum += part;
  }
  return sum;
}

}  // namespace tokamak
