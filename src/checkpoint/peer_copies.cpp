#include "checkpoint/peer_copies.h"

#include "base/error.h"

#include <algorithm>
#include <exception>

namespace tokamak {
namespace {

constexpr int kNobody = -1;

// As numbers, one after the other.
std::vector<int64_t> numbers_of(const std::vector<StateSlice>& slices) {
  std::vector<int64_t> numbers;
  for (const StateSlice& slice : slices) {
    numbers.insert(numbers.end(),
                   {int64_t(slice.file), int64_t(slice.tensor), slice.begin, slice.count, int64_t(slice.runs.size())});
    for (const PartRun& run : slice.runs) numbers.insert(numbers.end(), {run.whole, run.part, run.count});
  }
  return numbers;
}

std::vector<StateSlice> slices_of(const std::vector<int64_t>& numbers) {
  std::vector<StateSlice> slices;
  for (size_t at = 0; at < numbers.size();) {
    StateSlice slice{size_t(numbers[at]), size_t(numbers[at + 1]), numbers[at + 2], numbers[at + 3], {}};
    int64_t runs = numbers[at + 4];
    at += 5;
    for (int64_t i = 0; i < runs; ++i, at += 3) slice.runs.push_back({numbers[at], numbers[at + 1], numbers[at + 2]});
    slices.push_back(std::move(slice));
  }
  return slices;
}

}  // namespace

std::vector<PeerCopies::Piece> PeerCopies::pieces_of(const std::vector<StateSlice>& slices) {
  std::vector<Piece> pieces;
  for (const StateSlice& slice : slices)
    for (int64_t at = 0; at < slice.count; at += kSlicePiece)
      pieces.push_back({&slice, at, std::min(kSlicePiece, slice.count - at)});
  return pieces;
}

void PeerCopies::swap(std::span<const std::byte> out, int to, std::span<std::byte> in, int from) {
  auto sent = int64_t(out.size()), received = int64_t(in.size());
  if (to != kNobody && from != kNobody)
    links_.send_recv(out.data(), sent, to, in.data(), received, from, DType::kU8);
  else if (to != kNobody)
    links_.send(out.data(), sent, DType::kU8, to);
  else if (from != kNobody)
    links_.recv(in.data(), received, DType::kU8, from);
}

std::vector<StateSlice> PeerCopies::swap_slices(const std::vector<StateSlice>& mine, int to, int from) {
  std::vector<int64_t> out = numbers_of(mine);
  int64_t sent = int64_t(out.size()), received = 0;
  swap(std::as_bytes(std::span(&sent, 1)), to, std::as_writable_bytes(std::span(&received, 1)), from);
  std::vector<int64_t> in(size_t(received), 0);
  swap(std::as_bytes(std::span(out)), to, std::as_writable_bytes(std::span(in)), from);
  return slices_of(in);
}

// Both go on step by step, each in its own order.
void PeerCopies::swap_pieces(const std::vector<StateFile>& files, const std::vector<StateSlice>& mine, int to,
                             const ReadSlice& read, const std::vector<StateSlice>& theirs, int from,
                             const std::function<void(const Piece&, std::span<const std::byte>)>& take) {
  std::vector<Piece> out = to == kNobody ? std::vector<Piece>() : pieces_of(mine), in = pieces_of(theirs);
  std::vector<std::byte> received;
  for (size_t i = 0; i < std::max(out.size(), in.size()); ++i) {
    bool sends = i < out.size(), receives = i < in.size();
    if (receives) {
      const StateSlice& slice = *in[i].slice;
      received.resize(size_t(in[i].count * dtype_bytes(files[slice.file].tensors[slice.tensor].type.dtype)));
    }
    swap(sends ? read(*out[i].slice, out[i].at, out[i].count) : std::span<const std::byte>(), sends ? to : kNobody,
         receives ? std::span<std::byte>(received) : std::span<std::byte>(), receives ? from : kNobody);
    if (receives) take(in[i], received);
  }
}

// In turns, as a rank may keep what several have: each sends once, and receives where there is one more.
void PeerCopies::exchange(const std::vector<StateFile>& files, const std::vector<StateSlice>& slices,
                          const ReadSlice& read, const Keeper& keeper) {
  int rank = machines_.rank(), mine = machines_.keeper_of(rank);
  std::vector<int> sources = machines_.kept_by(rank), beside = machines_.kept_by(mine);
  auto my_turn = std::ranges::find(beside, rank) - beside.begin();
  std::exception_ptr error;
  auto try_to = [&](const auto& work) {
    if (error) return;
    try {
      work();
    } catch (const UserError&) {
      error = std::current_exception();
    }
  };
  for (int turn = 0; turn < machines_.most_kept(); ++turn) {
    int to = turn == my_turn ? mine : kNobody, from = size_t(turn) < sources.size() ? sources[size_t(turn)] : kNobody;
    std::vector<StateSlice> theirs = swap_slices(slices, to, from);
    if (from != kNobody) try_to([&] { keeper.begin(from, theirs); });
    swap_pieces(files, slices, to, read, theirs, from, [&](const Piece& piece, std::span<const std::byte> bytes) {
      try_to([&] { keeper.place(*piece.slice, piece.at, bytes); });
    });
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace tokamak
