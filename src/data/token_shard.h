// Token shards: llm.c's .bin format, readable by and from it. A header of 256 little-endian int32 (magic 20240520,
// version, token count, zeros), then the tokens: uint16 in version 1, uint32 in version 2 (ours, for vocabularies above
// 65,536) and in version 3 (ours, whose top bit marks a token that is not learned,
// data/marked_tokens.h). Read, not written: llm.c's form for Llama 3 (magic 20240801, version 7, uint32), as its
// dev/data/data_common.py writes it. For examples see tests/data/token_shard_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/file.h"
#include "data/sources/file_tokens.h"

namespace tokamak {

/// What the index knows of one shard.
struct TokenShardInfo {
  std::string file;  // name inside the folder
  int64_t tokens = 0;
  int64_t max_token = 0;
  std::string checksum;  // of the whole file, see base/checksum.h
};

/// Bytes of the largest shard that its header can describe. Nothing else that `prepare` makes is larger.
inline constexpr int64_t kMostShardBytes = 256 * 4 + int64_t(INT32_MAX) * 4;

/// Bytes that one token of a vocabulary takes in a shard: 2 or 4, which marks need.
int shard_token_bytes(int64_t vocab_size, bool marked = false);

/// What a shard's header says.
struct TokenShardHeader {
  TokenType type;
  TokenRun run;
};

/// True if these first bytes of a file are a shard's.
bool is_token_shard(std::span<const std::byte> bytes);

/// Reads a shard's header from the first bytes of a file of `file_bytes`; `name` is for messages. UserErrors: another
/// magic or version, a length that does not fit the count.
TokenShardHeader parse_token_shard_header(std::span<const std::byte> bytes, int64_t file_bytes, std::string_view name);

/// Opens a shard as tokens.
FileTokens open_token_shard(const std::filesystem::path& path);

/// A shard of a data folder. Opening checks magic, version, and the length against the count.
class TokenShard {
 public:
  explicit TokenShard(const std::filesystem::path& path) : tokens_(open_token_shard(path)) {}

  int64_t size() const { return tokens_.size(); }  // tokens
  int token_bytes() const { return tokens_.type().bytes; }
  bool is_marked() const { return tokens_.is_marked(); }
  const FileReader& file() const { return tokens_.file(); }
  const std::filesystem::path& path() const { return tokens_.path(); }

  /// Copies the tokens from `begin` on, out.size() of them; they must exist.
  void read(int64_t begin, std::span<int32_t> out) const { tokens_.read(begin, out); }

  /// Reads the whole file and compares it with what the index says; a UserError if they differ.
  void verify(const TokenShardInfo& info) const;

 private:
  FileTokens tokens_;
};

/// Writes a shard of up to `tokens` tokens (with exactly as many it is not read again at the end). It appears under its
/// name with commit(), not before. `marked`: tokens may have marks (data/marked_tokens.h), which takes 4 bytes a token.
class TokenShardWriter {
 public:
  TokenShardWriter(const std::filesystem::path& path, int64_t tokens, int token_bytes, bool marked = false);

  void append(std::span<const int32_t> ids);

  /// After the last token: everything is on the disk (a full one shows here) and can go into the index.
  TokenShardInfo finish();

  /// After finish(): gives the shard its name.
  void commit() { file_.commit(); }

 private:
  void flush();
  std::string shorten();  // gives the new checksum

  AtomicFile file_;
  TokenShardInfo info_;
  Checksum checksum_;
  std::vector<std::byte> buffer_;
  int64_t written_ = 0;
  int token_bytes_;
  bool marked_;
};

}  // namespace tokamak
