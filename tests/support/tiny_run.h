// A text, its token shards and a model so small that a whole training run takes a fraction of a second.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/random.h"
#include "config/config.h"
#include "data/prepare.h"
#include "tests/support/quick_file.h"

namespace tokamak::test {

/// Lines of words, the same for the same seed.
inline std::string tiny_text(size_t bytes = 6000, uint64_t seed = 1) {
  static const char* const kWords[] = {"the", "king", "said", "unto", "them", "go",   "and",  "see",
                                       "who", "came", "from", "that", "land", "with", "gold", "by"};
  std::string text;
  for (uint64_t i = 0; text.size() < bytes; ++i) {
    text += kWords[philox4x32(seed, i)[0] % std::size(kWords)];
    text += i % 11 == 10 ? ".\n" : " ";
  }
  return text;
}

/// Makes <folder>/text.txt and <folder>/data, with a trained vocabulary that is no multiple of anything.
inline void make_tiny_data(const std::filesystem::path& folder) {
  write_file_quickly(folder / "text.txt", tiny_text());
  PrepareOptions options;
  options.inputs = {(folder / "text.txt").string()};
  options.out = folder / "data";
  options.vocab_size = 301;
  prepare(options);
}

inline RunConfig tiny_config(const std::filesystem::path& folder) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 0};
  config.data.path = {(folder / "data").string()};
  config.optimizer.warmup_steps = 3;
  config.train = {.out = (folder / "run").string(), .steps = 20, .batch = 2, .eval_every = 0, .checkpoint_every = 0};
  config.compile.precision = Precision::kFp32;
  config.threads = 2;
  return config;
}

/// The same on the command line, for a program that runs in the folder; `more` may override.
inline std::vector<std::string> tiny_arguments(const std::string& command, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {command,
                                        "--model.layers=2",
                                        "--model.heads=2",
                                        "--model.width=32",
                                        "--model.context=16",
                                        "--model.vocab=0",
                                        "--optimizer.warmup_steps=3",
                                        "--train.steps=20",
                                        "--train.batch=2",
                                        "--train.eval_every=0",
                                        "--train.checkpoint_every=0",
                                        "--compile.precision=fp32",
                                        "--threads=2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace tokamak::test
