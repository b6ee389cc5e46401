#include "data/data_vocab.h"

#include "data/shard_index.h"

namespace tokamak {

RunConfig with_data_vocab(RunConfig config) {
  if (config.model.vocab == 0) config.model.vocab = read_shard_index(config.data.path).vocab_size;
  return config;
}

}  // namespace tokamak
