#include "backend/digest.h"

#include "backend/backend.h"
#include "base/checksum.h"
#include "base/parallel.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tokamak {
namespace {

constexpr int64_t kPiece = 16 << 10;  // elements

uint32_t bits_at(const std::byte* from, int32_t bytes) {
  uint32_t bits = 0;
  std::memcpy(&bits, from, size_t(bytes));
  return bits;
}

// The two numbers of a place in element_digest(), which grow by a constant from place to place.
struct PlaceNumbers {
  uint32_t added, factor;
};
constexpr uint32_t kAddedStep = 0x9E3779B1u, kFactorStep = 0x85EBCA77u;

PlaceNumbers numbers_of(uint64_t salt, uint64_t index) {
  uint32_t low = uint32_t(index), high = uint32_t(index >> 32);
  return {(low + high * 0xC2B2AE3Du) * kAddedStep + uint32_t(salt),
          (low + high * 0x27D4EB2Fu) * kFactorStep + uint32_t(salt >> 32)};
}

// Of elements whose places have the upper 32 bits in common. With sums in place of element_digest()'s products of the
// index a compiler makes vectors of it that are limited by memory.
template <int kBytes>
uint64_t digest_run(const std::byte* from, PlaceNumbers place, int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += uint64_t(bits_at(from + i * kBytes, kBytes) + place.added) * (place.factor | 1);
    place.added += kAddedStep;
    place.factor += kFactorStep;
  }
  return sum;
}

template <int kBytes>
uint64_t digest_row(const std::byte* from, uint64_t salt, int64_t whole, int64_t count) {
  uint64_t sum = 0;
  for (int64_t run; count > 0; from += run * kBytes, whole += run, count -= run) {
    run = std::min(count, (int64_t(1) << 32) - int64_t(uint32_t(whole)));
    sum += digest_run<kBytes>(from, numbers_of(salt, uint64_t(whole)), run);
  }
  return sum;
}

uint64_t digest_of(const DigestPiece& piece) {
  uint64_t sum = 0;
  auto* from = static_cast<const std::byte*>(piece.from);
  auto digest = piece.element_bytes == 4 ? digest_row<4> : piece.element_bytes == 2 ? digest_row<2> : digest_row<1>;
  int64_t whole = piece.whole;
  for (int64_t at = 0; at < piece.count; at += piece.row, whole += piece.stride)
    sum += digest(from + at * piece.element_bytes, piece.salt, whole, std::min(piece.row, int32_t(piece.count - at)));
  return sum;
}

class HostDigest : public Kernel {
 public:
  explicit HostDigest(std::vector<DigestPiece> pieces) : pieces_(std::move(pieces)) {}

  void run(std::span<const void* const>, std::span<void* const> outputs) override {
    std::vector<uint64_t> sums(static_cast<size_t>(num_threads()));
    parallel_for(int64_t(pieces_.size()), 1, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t i = begin; i < end; ++i) sums[size_t(thread)] += digest_of(pieces_[size_t(i)]);
    });
    uint64_t sum = std::accumulate(sums.begin(), sums.end(), uint64_t(0));
    std::memcpy(outputs[0], &sum, sizeof sum);
  }

 private:
  std::vector<DigestPiece> pieces_;
};

// The runs from `first` on that are short rows of one length and one distance, side by side in the share; the last may
// be shorter.
size_t end_of_rows(const std::vector<PartRun>& share, size_t first) {
  size_t end = first + 1;
  if (share[first].count >= kPiece) return end;
  for (; end < share.size(); ++end) {
    const PartRun &before = share[end - 1], &run = share[end];
    bool goes_on = before.count == share[first].count && run.count <= before.count &&
                   run.part == before.part + before.count &&
                   run.whole - before.whole == share[first + 1].whole - share[first].whole;
    if (!goes_on) break;
  }
  return end;
}

}  // namespace

uint64_t digest_salt(std::string_view name) { return checksum(std::as_bytes(std::span(name))); }

std::vector<DigestPiece> digest_pieces(const void* data, int64_t element_bytes, uint64_t salt,
                                       const std::vector<PartRun>& share) {
  std::vector<DigestPiece> pieces;
  for (size_t first = 0, end; first < share.size(); first = end) {
    end = end_of_rows(share, first);
    const PartRun& run = share[first];
    int64_t count = share[end - 1].part + share[end - 1].count - run.part;
    if (count == 0) continue;
    // A single row is cut anywhere, as rows that follow each other; several are cut only between them.
    int64_t row = std::min(run.count, kPiece), length = kPiece / row * row;
    int64_t stride = end - first > 1 ? share[first + 1].whole - run.whole : row;
    for (int64_t at = 0; at < count; at += length)
      pieces.push_back({.from = static_cast<const std::byte*>(data) + (run.part + at) * element_bytes,
                        .salt = salt,
                        .whole = run.whole + at / row * stride,
                        .stride = stride,
                        .row = int32_t(row),
                        .count = int32_t(std::min(length, count - at)),
                        .element_bytes = int32_t(element_bytes)});
  }
  return pieces;
}

std::unique_ptr<Kernel> make_host_digest(std::vector<DigestPiece> pieces) {
  return std::make_unique<HostDigest>(std::move(pieces));
}

}  // namespace tokamak
