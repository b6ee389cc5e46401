#include "checkpoint/state_slices.h"

#include "base/error.h"
#include "checkpoint/run_folder.h"

#include <algorithm>
#include <cstring>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSliceChecksum = "digest:";

// What an element adds to a checksum: the steps of SplitMix64 (Steele, Lea, Flood, 2014), each of which can be undone.
// Files that were written have it: it stays as it is.
uint64_t element_checksum(uint64_t salt, uint64_t index, uint32_t bits) {
  uint64_t x = salt + (index + 1) * 0x9E3779B97F4A7C15u + bits;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

template <int kBytes>
uint64_t sum_of(std::span<const std::byte> elements, uint64_t salt, uint64_t whole) {
  uint64_t sum = 0;
  for (size_t at = 0; at < elements.size(); at += kBytes) {
    uint32_t bits = 0;
    std::memcpy(&bits, elements.data() + at, kBytes);
    sum += element_checksum(salt, whole++, bits);
  }
  return sum;
}

// Of the runs of a share what lies within [begin, begin + count).
std::vector<PartRun> within(const std::vector<PartRun>& share, int64_t begin, int64_t count) {
  std::vector<PartRun> runs;
  for (const PartRun& run : share) {
    int64_t first = std::max(run.part, begin), end = std::min(run.part + run.count, begin + count);
    if (first < end) runs.push_back({run.whole + first - run.part, first - begin, end - first});
  }
  return runs;
}

}  // namespace

std::vector<StateSlice> owned_slices(const TensorStore& store, const std::vector<StateFile>& files) {
  std::vector<StateSlice> slices;
  for (size_t file = 0; file < files.size(); ++file)
    for (size_t i = 0; i < files[file].tensors.size(); ++i) {
      const std::string& name = files[file].tensors[i].name;
      auto [begin, count] = store.owned(name, int64_t(i));
      if (count > 0) slices.push_back({file, i, begin, count, within(store.share(name), begin, count)});
    }
  return slices;
}

uint64_t slice_checksum(std::span<const std::byte> elements, int64_t element_bytes, uint64_t salt, int64_t whole) {
  auto sum = element_bytes == 4 ? sum_of<4> : element_bytes == 2 ? sum_of<2> : sum_of<1>;
  return sum(elements, salt, uint64_t(whole));
}

std::string format_slice_checksum(uint64_t sum) { return fmt::format("{}{:016x}", kSliceChecksum, sum); }

bool is_slice_checksum(std::string_view checksum) { return checksum.starts_with(kSliceChecksum); }

std::vector<FileRecord> write_files(const fs::path& folder, const std::vector<StateFile>& files,
                                    const std::vector<StateSlice>& slices, const ReadSlice& read) {
  std::vector<FileRecord> records;
  auto slice = slices.begin();
  for (size_t file = 0; file < files.size(); ++file) {
    SafetensorsWriter writer(folder / files[file].name, files[file].tensors, model_metadata());
    for (; slice != slices.end() && slice->file == file; ++slice) {
      const auto& [name, type] = files[file].tensors[slice->tensor];
      for (int64_t at = 0; at < slice->count; at += kSlicePiece) {
        std::span<const std::byte> piece = read(*slice, at, std::min(kSlicePiece, slice->count - at));
        require_finite(run_folder_of(folder), name, piece, type.dtype);
        writer.write_piece(name, piece);
      }
    }
    records.push_back(finish_file(writer, files[file].name));
  }
  return records;
}

ReadSlice read_from(const TensorStore& store, const std::vector<StateFile>& files) {
  return
      [&store, &files, piece = std::vector<std::byte>()](const StateSlice& slice, int64_t at, int64_t count) mutable {
        const NamedType& tensor = files[slice.file].tensors[slice.tensor];
        int64_t size = dtype_bytes(tensor.type.dtype);
        piece.resize(size_t(count * size));
        store.read(tensor.name, piece.data(), count * size, (slice.begin + at) * size);
        return std::span<const std::byte>(piece);
      };
}

}  // namespace tokamak
