// Text from a model, token by token, with a cache of keys and values.
#pragma once

#include "config/config.h"
#include "exec/program.h"
#include "train/sampler.h"
#include "train/step_compiler.h"

#include <functional>

namespace tokamak {

class Generator {
 public:
  /// Takes parameters as `store` holds them, padded or not, and adds to it what it lacks of them, and its caches.
  Generator(const RunConfig& config, const Platform& platform, Backend& backend, TensorStore& store);

  /// Continues `prompt` (one token or more) by `count` tokens, each handed to on_token as it is chosen; on_token
  /// returns false to stop. When the context is full, the newer half of it is kept. The same seed gives the same
  /// tokens.
  std::vector<int32_t> generate(std::span<const int32_t> prompt, int64_t count, const SamplingOptions& options,
                                int64_t seed, const std::function<bool(int32_t)>& on_token = {});

 private:
  void feed(std::span<const int32_t> tokens);
  void feed_with(Program& program, std::span<const int32_t> tokens);

  int64_t context_, vocab_;    // vocab_ without padding
  Program chunk_, single_;     // kChunk tokens and one token at a time
  int64_t position_ = 0;       // tokens in the cache
  std::vector<float> logits_;  // of the last token fed
};

}  // namespace tokamak
