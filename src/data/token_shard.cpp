#include "data/token_shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "data/file_checksum.h"
#include "data/marked_tokens.h"

namespace tokamak {

namespace {

constexpr int32_t kMagic = 20240520;
constexpr size_t kBufferBytes = size_t(1) << 20;
constexpr int64_t kMaxUint16Vocabulary = 65536;

using Header = std::array<int32_t, 256>;  // magic, version, token count, zeros

static_assert(std::endian::native == std::endian::little, "headers are little-endian and read as they are");

Header make_header(int64_t tokens, int token_bytes, bool marked) {
  return {kMagic, marked ? 3 : token_bytes == 2 ? 1 : 2, int32_t(tokens)};
}

/// A kind of shard: the first two numbers of its header tell it.
struct Kind {
  int32_t magic;
  int32_t version;
  TokenType type;
};

constexpr Kind kKinds[] = {
    {kMagic, 1, kUint16}, {kMagic, 2, kUint32}, {kMagic, 3, kMarkedUint32}, {20240801, 7, kUint32}};

bool has_magic(int32_t magic) {
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.magic == magic; });
}

TokenType type_of(const Header& header, std::string_view name) {
  for (const Kind& kind : kKinds)
    if (header[0] == kind.magic && header[1] == kind.version) return kind.type;
  if (!has_magic(header[0]))
    user_error(
        "[shard] {}: expected the magic number {}, got {}; this is not a token shard. Tokens without a header "
        "(nanoGPT) are format raw; with an .idx file beside them (Megatron), megatron. `tokamak prepare` makes shards",
        name, kMagic, header[0]);
  std::string versions = header[0] == kMagic
                             ? "version 1 (uint16 tokens), 2 (uint32 tokens) or 3 (uint32 tokens with marks)"
                             : "version 7";
  user_error("[shard] {}: expected {}, got {}; the shard is damaged: copy it again or run `prepare` again", name,
             versions, header[1]);
}

/// Stores tokens in their own width; gives the largest of them.
template <typename Stored>
int32_t narrow(std::span<const int32_t> ids, std::byte* to) {
  int32_t most = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    Stored value = Stored(ids[i]);
    std::memcpy(to + i * sizeof value, &value, sizeof value);
    most = std::max(most, id_of(ids[i]));
  }
  return most;
}

}  // namespace

int shard_token_bytes(int64_t vocab_size, bool marked) { return vocab_size <= kMaxUint16Vocabulary && !marked ? 2 : 4; }

bool is_token_shard(std::span<const std::byte> bytes) {
  int32_t magic = 0;
  if (bytes.size() >= sizeof magic) std::memcpy(&magic, bytes.data(), sizeof magic);
  return has_magic(magic);
}

TokenShardHeader parse_token_shard_header(std::span<const std::byte> bytes, int64_t file_bytes, std::string_view name) {
  Header header;
  if (bytes.size() < sizeof header)
    user_error(
        "[shard] {}: expected a header of {} bytes, got a file of {} bytes; the shard is cut short: copy it again or "
        "run `prepare` again",
        name, sizeof header, file_bytes);
  std::memcpy(header.data(), bytes.data(), sizeof header);
  TokenType type = type_of(header, name);
  int64_t tokens = header[2];
  int64_t expected = int64_t(sizeof header) + std::max<int64_t>(tokens, 0) * type.bytes;
  if (tokens < 0 || file_bytes != expected)
    user_error(
        "[shard] {}: expected {} bytes for the {} tokens of its header, got {} bytes; the shard is damaged or cut "
        "short: copy it again or run `prepare` again",
        name, expected, tokens, file_bytes);
  return {type, {int64_t(sizeof header), tokens}};
}

FileTokens open_token_shard(const std::filesystem::path& path) {
  FileReader file(path);
  std::vector<std::byte> bytes(size_t(std::min<int64_t>(file.size(), sizeof(Header))));
  file.read(0, bytes);
  TokenShardHeader header = parse_token_shard_header(bytes, file.size(), path.string());
  return FileTokens(std::move(file), header.type, {header.run});
}

void TokenShard::verify(const TokenShardInfo& info) const { verify_file(file(), info.checksum, "shard"); }

TokenShardWriter::TokenShardWriter(const std::filesystem::path& path, int64_t tokens, int token_bytes, bool marked)
    : file_(path), token_bytes_(token_bytes), marked_(marked) {
  TOKAMAK_CHECK(!marked || token_bytes == 4, "a mark needs 4 bytes, not {}", token_bytes);
  TOKAMAK_CHECK(tokens <= std::numeric_limits<int32_t>::max(), "{} tokens in one shard", tokens);
  info_.file = path.filename().string();
  info_.tokens = tokens;
  Header header = make_header(tokens, token_bytes, marked);
  auto bytes = std::as_bytes(std::span(header));
  buffer_.assign(bytes.begin(), bytes.end());
}

void TokenShardWriter::append(std::span<const int32_t> ids) {
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

void TokenShardWriter::flush() {
  checksum_.update(buffer_);
  file_.write(buffer_);
  buffer_.clear();
}

TokenShardInfo TokenShardWriter::finish() {
  TOKAMAK_CHECK(written_ <= info_.tokens, "{} tokens written into a shard of {}", written_, info_.tokens);
  flush();
  info_.checksum = written_ < info_.tokens ? shorten() : format_checksum(checksum_.digest());
  file_.sync();
  return info_;
}

std::string TokenShardWriter::shorten() {
  info_.tokens = written_;
  Header header = make_header(written_, token_bytes_, marked_);
  file_.write_at(0, std::as_bytes(std::span(header)));
  return checksum_file(file_.temporary_path());
}

}  // namespace tokamak
