// What each of several ranks writes of a checkpoint's files: all together every element, once. Tests:
// tests/mesh/shared_save_test.cpp.
#pragma once

#include "checkpoint/checkpoint_tensors.h"

#include <functional>

namespace tokamak {

/// Elements of a tensor that one rank writes.
struct StateSlice {
  size_t file = 0, tensor = 0;   // which, of state_files()
  int64_t begin = 0, count = 0;  // in the rank's share
  std::vector<PartRun> runs;     // where they lie in the whole tensor, and in this slice
};

/// Those of this rank.
std::vector<StateSlice> owned_slices(const TensorStore& store, const std::vector<StateFile>& files);

/// The checksum of a tensor that is written in slices: the sum, modulo 2^64, of a number for each of its elements, so
/// that each rank adds up its own. Of elements that lie side by side, from place `whole` of the tensor on; `salt`: its
/// digest_salt().
uint64_t slice_checksum(std::span<const std::byte> elements, int64_t element_bytes, uint64_t salt, int64_t whole);
std::string format_slice_checksum(uint64_t sum);
bool is_slice_checksum(std::string_view checksum);

/// `count` elements of a slice from its element `at` on; valid until the next call.
using ReadSlice = std::function<std::span<const std::byte>(const StateSlice& slice, int64_t at, int64_t count)>;

/// Elements that are read and written at a time.
inline constexpr int64_t kSlicePiece = int64_t(1) << 20;

/// Writes both files into the folder, of one rank, whose slices are whole tensors; says what was written.
std::vector<FileRecord> write_files(const std::filesystem::path& folder, const std::vector<StateFile>& files,
                                    const std::vector<StateSlice>& slices, const ReadSlice& read);

/// What the store has now, through a piece of host memory.
ReadSlice read_from(const TensorStore& store, const std::vector<StateFile>& files);

}  // namespace tokamak
