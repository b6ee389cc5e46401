// index.json beside the shards: which there are, how many tokens they hold, their vocabulary, and the checksums of all
// files and of itself. It is written last, so a folder that has it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/file_checksum.h"
#include "data/token_array.h"
#include "data/token_shard.h"

namespace tokamak {

/// One part of the data: its shards, in order, are one stream of tokens.
struct SplitIndex {
  int64_t documents = 0;   // that begin in it
  int64_t text_bytes = 0;  // of the text its tokens stand for; markers count nothing
  std::vector<TokenShardInfo> shards;
  std::vector<FileFingerprint> sources = {};  // the files that it was made of, in order; none where nobody knows

  int64_t tokens() const;
  int64_t max_token() const;
};

struct TokenShardIndex {
  int64_t vocab_size = 0;
  int64_t end_of_text = 0;              // id of the marker between documents
  std::vector<FileChecksum> tokenizer;  // its files
  bool sealed = true;  // false: of an earlier version, whose index says nothing of itself and of the tokenizer
  SplitIndex train;
  SplitIndex val;
};

/// The name of the index inside a data folder.
inline constexpr const char* kIndexFile = "index.json";

/// What it says of its form.
inline constexpr const char* kIndexFormat = "tokamak-tokens";

/// The folder inside it that holds what `prepare` has not finished.
inline constexpr const char* kUnfinishedFolder = "prepare.unfinished";

/// Whether `path` is a folder with an index (not MDS's, which is called so, too), that is, a finished one.
bool is_prepared(const std::filesystem::path& path);

/// A UserError if `path` is a folder where `prepare` has begun, but there is no finished data yet.
void require_finished(const std::filesystem::path& path);

/// Whether SplitIndex::sources are read: there may be millions, which take their time and a KiB each.
enum class IndexSources { kLeaveOut, kRead };

/// Reads and checks a data folder's index, its own checksum included; UserErrors name the file and the field.
TokenShardIndex read_token_shard_index(const std::filesystem::path& folder,
                                       IndexSources sources = IndexSources::kLeaveOut);

/// The index as the text of the file.
std::string format_token_shard_index(const TokenShardIndex& index);

/// Writes it, atomically.
void write_token_shard_index(const TokenShardIndex& index, const std::filesystem::path& folder);

/// The shards of one split as one stream of tokens.
class TokenStream {
 public:
  /// Opens the shards of a split and checks them against the index (not their checksums: see verify()).
  TokenStream(const std::filesystem::path& folder, const SplitIndex& split);

  int64_t size() const { return begins_.back(); }  // tokens

  /// Copies the tokens from `begin` on, across shards, out.size() of them; they must exist.
  void read(int64_t begin, std::span<int32_t> out) const;

  /// The shard that token `at` lies in, and the token's number inside it.
  struct Place {
    const TokenShard& shard;
    int64_t token = 0;
  };
  Place place(int64_t at) const;

  const std::vector<TokenShard>& shards() const { return shards_; }

  /// Reads every shard whole and compares checksums.
  void verify() const;

  /// The number of the shard that token `at` lies in.
  size_t shard_of(int64_t at) const;

 private:
  std::vector<TokenShardInfo> infos_;
  std::vector<TokenShard> shards_;
  std::vector<int64_t> begins_;  // of each shard, and the end
};

}  // namespace tokamak
