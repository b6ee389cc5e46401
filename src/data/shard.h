// Token shards: llm.c's .bin format, readable by and from it. A header of 256 little-endian int32 (magic 20240520,
// version, token count, zeros), then the tokens: uint16 in version 1, uint32 in version 2 (ours, for vocabularies above
// 65,536). For examples see tests/data/shard_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/file.h"

namespace tokamak {

/// What the index knows of one shard.
struct ShardInfo {
  std::string file;  // name inside the folder
  int64_t tokens = 0;
  int64_t max_token = 0;
  std::string checksum;  // of the whole file, see base/checksum.h
};

/// Bytes that one token of a vocabulary takes in a shard: 2 or 4.
int shard_token_bytes(int64_t vocab_size);

/// A shard, mapped. Opening checks magic, version, and the length against the count.
class Shard {
 public:
  explicit Shard(const std::filesystem::path& path);

  int64_t size() const { return size_; }  // tokens
  int token_bytes() const { return token_bytes_; }
  const std::filesystem::path& path() const { return file_.path(); }

  /// Copies the tokens from `begin` on, out.size() of them; they must exist.
  void read(int64_t begin, std::span<int32_t> out) const;

  /// Reads the whole file and compares it with what the index says; a UserError if they differ.
  void verify(const ShardInfo& info) const;

 private:
  MappedFile file_;
  int64_t size_ = 0;
  int token_bytes_ = 2;
};

/// Writes a shard of up to `tokens` tokens (with exactly as many it is not read again at the end). It appears under its
/// name with commit(), not before.
class ShardWriter {
 public:
  ShardWriter(const std::filesystem::path& path, int64_t tokens, int token_bytes);

  void append(std::span<const int32_t> ids);

  /// After the last token: everything is on the disk (a full one shows here) and can go into the index.
  ShardInfo finish();

  /// After finish(): gives the shard its name.
  void commit() { file_.commit(); }

 private:
  void flush();
  void shorten();

  AtomicFile file_;
  ShardInfo info_;
  Checksum checksum_;
  std::vector<std::byte> buffer_;
  int64_t written_ = 0;
  int token_bytes_;
};

}  // namespace tokamak
