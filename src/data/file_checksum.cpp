#include "data/file_checksum.h"

#include <algorithm>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"

namespace tokamak {

namespace {

constexpr int64_t kPieceBytes = int64_t(1) << 20;

}  // namespace

std::string checksum_file(const FileReader& file) {
  Checksum sum;
  std::vector<std::byte> buffer;
  for (int64_t at = 0; at < file.size(); at += int64_t(buffer.size())) {
    buffer.resize(size_t(std::min(kPieceBytes, file.size() - at)));
    file.read(at, buffer);
    sum.update(buffer);
  }
  return format_checksum(sum.digest());
}

std::string checksum_file(const std::filesystem::path& path) { return checksum_file(FileReader(path)); }

bool has_checksum(const std::filesystem::path& path, const std::string& checksum, int64_t most) {
  try {
    FileReader file(path);
    return file.size() <= most && checksum_file(file) == checksum;
  } catch (const UserError&) {
    return false;
  }
}

void verify_file(const FileReader& file, const std::string& checksum, std::string_view where, int64_t most) {
  std::string got = file.size() > most ? "one of a file that is too large" : checksum_file(file);
  if (got != checksum)
    user_error(
        "[{}] {}: expected the checksum {} of its index, got {}; the file is damaged: copy it again or run `prepare` "
        "again",
        where, file.path().string(), checksum, got);
}

}  // namespace tokamak
