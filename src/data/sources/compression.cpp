#include "data/sources/compression.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

namespace {

using namespace std::string_view_literals;

/// "BZh", a digit, and the magic number of a block, or of the end where there is none.
bool is_bzip2(std::string_view begin) {
  if (!begin.starts_with("BZh") || begin.size() < 5) return false;
  begin.remove_prefix(4);
  return begin.starts_with("1AY&SY") || begin.starts_with("\x17rE8P\x90");
}

bool is_gzip(std::string_view begin) { return begin.starts_with("\x1f\x8b"); }

bool is_xz(std::string_view begin) {
  return begin.starts_with(
      "\xfd"
      "7zXZ\0"sv);
}

/// A frame of Zstandard, or one to be passed over (RFC 8878, 3.1): their magic numbers are little-endian.
bool is_zstd(std::string_view begin) {
  return begin.starts_with("\x28\xb5\x2f\xfd") ||
         (begin.size() >= 4 && (begin[0] & 0xf0) == 0x50 && begin.substr(1, 3) == "\x2a\x4d\x18");
}

struct Compression {
  std::string_view name, ending;
  bool (*recognizes)(std::string_view begin);
  const Decompressor* decompressor;
};

constexpr Compression kCompressions[] = {
    {"bzip2", ".bz2", is_bzip2, &bzip2_decompressor}, {"xz", ".xz", is_xz, &xz_decompressor},
    {"gzip", ".gz", is_gzip, &gzip_decompressor},     {"zstd", ".zst", is_zstd, &zstd_decompressor},
    {"zstd", ".zstd", is_zstd, &zstd_decompressor},  // as MDS names it
};
constexpr size_t kMagicBytes = 10;

}  // namespace

bool is_compressed(std::string_view begin) {
  return std::any_of(std::begin(kCompressions), std::end(kCompressions),
                     [&](const Compression& one) { return one.recognizes(begin); });
}

std::unique_ptr<ByteStream> decompress(std::unique_ptr<ByteStream> stream) {
  std::string name = stream->name();
  ByteBuffer buffer(std::move(stream));
  buffer.hold(kMagicBytes);
  for (const Compression& one : kCompressions) {
    if (!one.recognizes(buffer.view())) {
      if (name.ends_with(one.ending)) damaged_error(buffer, one.name, "it does not begin as such a file does");
      continue;
    }
    if (!one.decompressor->open)
      user_error("[data] {}: expected a program that reads {}, got one built without it; install {} and build again",
                 name, one.name, one.decompressor->missing);
    return one.decompressor->open(std::move(buffer));
  }
  return rest_of(std::move(buffer));
}

std::string_view without_compression_ending(std::string_view name) {
  for (const Compression& one : kCompressions)
    if (name.ends_with(one.ending)) return name.substr(0, name.size() - one.ending.size());
  return name;
}

bool is_named_compressed(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  return without_compression_ending(name).size() < name.size();
}

void damaged_error(const ByteBuffer& in, std::string_view compression, std::string_view reason) {
  user_error("[data] {}: expected {} data, got damage at byte {}: {}; copy or download the file again",
             in.stream().name(), compression, in.position(), reason);
}

}  // namespace tokamak
