// A data folder for tests, made of the given tokens: shards and index, vocabulary of 100, end of text 99.
#pragma once

#include <fmt/core.h>

#include <vector>

#include "data/token_shard_index.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {

class SmallShards {
 public:
  using Tokens = std::vector<std::vector<int32_t>>;  // of each shard

  SmallShards(const Tokens& train, const Tokens& val, int64_t vocab_size = 100) {
    index_.vocab_size = vocab_size;
    index_.end_of_text = vocab_size - 1;
    index_.train = write("train", train);
    index_.val = write("val", val);
    write_token_shard_index(index_, path());
  }

  const std::filesystem::path& path() const { return folder_.path(); }
  const TokenShardIndex& index() const { return index_; }

 private:
  SplitIndex write(const char* split, const Tokens& shards) {
    SplitIndex result;
    for (const auto& ids : shards) {
      TokenShardWriter writer(folder_ / fmt::format("{}_{:06}.bin", split, result.shards.size()), int64_t(ids.size()),
                              shard_token_bytes(index_.vocab_size));
      writer.append(ids);
      result.shards.push_back(writer.finish());
      writer.commit();
    }
    return result;
  }

  TemporaryFolder folder_;
  TokenShardIndex index_;
};

}  // namespace tokamak
