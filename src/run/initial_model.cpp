#include "run/initial_model.h"

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "config/config.h"
#include "config/json.h"
#include "config/validate.h"
#include "config/visit.h"
#include "data/data_tokenizer.h"

namespace tokamak {
namespace {

// How it is trained, not what it is.
bool is_of_training(std::string_view key) {
  return key == "model.preset" || key == "model.from" || key == "model.dropout" || key == "model.window_warmup_steps" ||
         !key.starts_with("model.");
}

// A run that goes on has its own, and does not need the other one any more.
ModelConfig model_of(const RunConfig& config) {
  std::optional<FoundCheckpoint> own;
  if (config.train.resume) own = peek_checkpoint(config.train.out);
  FoundCheckpoint found = own ? *own : peek_model(config.model.from);
  return run_config_from_json(found.state.config_json, found.path.string()).model;
}

}  // namespace

RunConfig with_initial_model(RunConfig config, const GivenOptions& given) {
  if (config.model.from.empty()) return config;
  RunConfig asked = config;
  config.model = model_of(config);
  config.model.preset = asked.model.preset;
  config.model.from = asked.model.from;
  config.model.dropout = asked.model.dropout;
  config.model.window_warmup_steps = asked.model.window_warmup_steps;
  std::vector<Field> ours = fields_of(config), theirs = fields_of(asked);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (is_of_training(ours[i].key) || !given.chose(ours[i].key)) continue;
    std::string has = format_value(get(ours[i])), wanted = format_value(get(theirs[i]));
    if (has != wanted)
      user_error("[{}] expected {}, which the model in {} has, got {}; leave it out", ours[i].key, has,
                 config.model.from, wanted);
  }
  validate(config);
  return config;
}

std::shared_ptr<const Tokenizer> tokenizer_for_model(const RunConfig& config,
                                                     std::shared_ptr<const Tokenizer> tokenizer) {
  if (config.model.from.empty()) return tokenizer;
  std::shared_ptr<const Tokenizer> own = load_model_tokenizer(config.model.from);
  if (!own || !tokenizer) return tokenizer ? tokenizer : own;
  if (tokenizer_fingerprint(*own) == tokenizer_fingerprint(*tokenizer)) return tokenizer;
  user_error(
      "[model.from] expected data of the tokenizer that the model in {} has ({} tokens), got that of another ({} "
      "tokens); prepare the data with `tokamak prepare --vocab={}`, or where the data's only adds tokens, make a model "
      "with rows for them by `tokamak export` or `import` with --vocab",
      config.model.from, own->vocab_size(), tokenizer->vocab_size(), config.model.from);
}

}  // namespace tokamak
