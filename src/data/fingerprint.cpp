#include "data/fingerprint.h"

#include <algorithm>

#include "base/checksum.h"

namespace tokamak {

namespace {

constexpr int64_t kEdgeBytes = 64 << 10;
constexpr int64_t kPageBytes = 4 << 10;
constexpr int64_t kPages = 16;

}  // namespace

FileFingerprint fingerprint_file(const std::filesystem::path& path) { return fingerprint_file(FileReader(path)); }

FileFingerprint fingerprint_file(const FileReader& file) {
  int64_t size = file.size();
  Checksum sum;
  std::vector<std::byte> buffer;
  auto add = [&](int64_t offset, int64_t bytes) {
    buffer.resize(size_t(bytes));
    file.read(offset, buffer);
    sum.update(buffer);
  };
  sum.update(std::as_bytes(std::span(&size, 1)));
  int64_t between = size - 2 * kEdgeBytes;
  if (between <= kPages * kPageBytes) {
    add(0, size);
  } else {
    add(0, kEdgeBytes);
    // The page in the middle of each of kPages equal parts.
    for (int64_t i = 0; i < kPages; ++i)
      add(kEdgeBytes + between / (2 * kPages) * (2 * i + 1) - kPageBytes / 2, kPageBytes);
    add(size - kEdgeBytes, kEdgeBytes);
  }
  return {file.path().string(), size, format_checksum(sum.digest())};
}

std::vector<FileFingerprint> fingerprints_from(const JsonFields& fields, const char* key) {
  std::vector<FileFingerprint> files;
  for (const JsonFields& file : fields.objects(key))
    files.push_back({file.text("path"), file.number("bytes"), file.text("checksum")});
  return files;
}

}  // namespace tokamak
