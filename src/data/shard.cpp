#include "data/shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr int32_t kMagic = 20240520;
constexpr size_t kBufferBytes = size_t(1) << 20;
constexpr int64_t kMaxUint16Vocabulary = 65536;

using Header = std::array<int32_t, 256>;  // magic, version, token count, zeros

static_assert(std::endian::native == std::endian::little, "shards are little-endian and mapped as they are");

Header make_header(int64_t tokens, int token_bytes) { return {kMagic, token_bytes == 2 ? 1 : 2, int32_t(tokens)}; }

int bytes_of_version(int32_t version) { return version == 2 ? 4 : 2; }

Header read_header(const MappedFile& file) {
  Header header;
  std::string name = file.path().string();
  if (file.bytes().size() < sizeof header)
    user_error(
        "[shard] {}: expected a header of {} bytes, got a file of {} bytes; the shard is cut short: run `prepare` "
        "again",
        name, sizeof header, file.bytes().size());
  std::memcpy(header.data(), file.bytes().data(), sizeof header);
  if (header[0] != kMagic)
    user_error("[shard] {}: expected the magic number {}, got {}; this is not a token shard: make one with `prepare`",
               name, kMagic, header[0]);
  if (header[1] != 1 && header[1] != 2)
    user_error("[shard] {}: expected version 1 (uint16 tokens) or 2 (uint32 tokens), got {}; run `prepare` again", name,
               header[1]);
  return header;
}

template <typename Stored>
void widen(const std::byte* from, std::span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    out[i] = int32_t(value);
  }
}

/// Stores tokens in their own width; gives the largest of them.
template <typename Stored>
int32_t narrow(std::span<const int32_t> ids, std::byte* to) {
  int32_t most = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    Stored value = Stored(ids[i]);
    std::memcpy(to + i * sizeof value, &value, sizeof value);
    most = std::max(most, ids[i]);
  }
  return most;
}

}  // namespace

int shard_token_bytes(int64_t vocab_size) { return vocab_size <= kMaxUint16Vocabulary ? 2 : 4; }

Shard::Shard(const std::filesystem::path& path) : file_(path) {
  Header header = read_header(file_);
  size_ = header[2];
  token_bytes_ = bytes_of_version(header[1]);
  size_t expected = sizeof(Header) + size_t(std::max<int64_t>(size_, 0)) * size_t(token_bytes_);
  if (size_ < 0 || file_.bytes().size() != expected)
    user_error(
        "[shard] {}: expected {} bytes for the {} tokens of its header, got {} bytes; the shard is damaged or cut "
        "short: run `prepare` again",
        path.string(), expected, size_, file_.bytes().size());
}

void Shard::read(int64_t begin, std::span<int32_t> out) const {
  TOKAMAK_CHECK(begin >= 0 && begin + int64_t(out.size()) <= size_, "tokens {} to {} of {} in {}", begin,
                begin + int64_t(out.size()), size_, path().string());
  const std::byte* from = file_.bytes().data() + sizeof(Header) + size_t(begin) * size_t(token_bytes_);
  token_bytes_ == 2 ? widen<uint16_t>(from, out) : widen<uint32_t>(from, out);
}

void Shard::verify(const ShardInfo& info) const {
  std::string got = format_checksum(checksum(file_.bytes()));
  if (got != info.checksum)
    user_error(
        "[shard] {}: expected the checksum {} of its index, got {}; the shard is damaged: copy it again or run "
        "`prepare` again",
        path().string(), info.checksum, got);
}

ShardWriter::ShardWriter(const std::filesystem::path& path, int64_t tokens, int token_bytes)
    : file_(path), token_bytes_(token_bytes) {
  TOKAMAK_CHECK(tokens <= std::numeric_limits<int32_t>::max(), "{} tokens in one shard", tokens);
  info_.file = path.filename().string();
  info_.tokens = tokens;
  Header header = make_header(tokens, token_bytes);
  auto bytes = std::as_bytes(std::span(header));
  buffer_.assign(bytes.begin(), bytes.end());
}

void ShardWriter::append(std::span<const int32_t> ids) {
  written_ += int64_t(ids.size());
  for (size_t count; !ids.empty(); ids = ids.subspan(count)) {
    count = std::min(ids.size(), kBufferBytes / size_t(token_bytes_));
    size_t used = buffer_.size();
    buffer_.resize(used + count * size_t(token_bytes_));
    int32_t most = token_bytes_ == 2 ? narrow<uint16_t>(ids.first(count), buffer_.data() + used)
                                     : narrow<uint32_t>(ids.first(count), buffer_.data() + used);
    info_.max_token = std::max<int64_t>(info_.max_token, most);
    if (buffer_.size() >= kBufferBytes) flush();
  }
}

void ShardWriter::flush() {
  checksum_.update(buffer_);
  file_.write(buffer_);
  buffer_.clear();
}

ShardInfo ShardWriter::finish() {
  TOKAMAK_CHECK(written_ <= info_.tokens, "{} tokens written into a shard of {}", written_, info_.tokens);
  flush();
  if (written_ < info_.tokens) shorten();
  file_.sync();
  info_.checksum = format_checksum(checksum_.digest());
  return info_;
}

void ShardWriter::shorten() {
  info_.tokens = written_;
  Header header = make_header(written_, token_bytes_);
  file_.write_at(0, std::as_bytes(std::span(header)));
  MappedFile written(file_.temporary_path());
  checksum_ = {};
  checksum_.update(written.bytes());
}

}  // namespace tokamak
