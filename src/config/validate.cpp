#include "config/validate.h"

#include "base/error.h"
#include "config/config.h"
#include "config/visit.h"

namespace tokamak {

namespace {

void check_heads(const ModelConfig& model) {
  if (model.width % model.heads == 0) return;
  user_error("[model.heads] expected a divisor of model.width = {}, got {}; change one of them", model.width,
             model.heads);
}

void check_total_batch(const RunConfig& config) {
  int64_t micro_batch = config.train.batch * config.model.context;
  if (config.train.total_batch % micro_batch == 0) return;
  user_error(
      "[train.total_batch] expected a multiple of train.batch x model.context = {} x {} = {} tokens, got {}; "
      "use {} or change train.batch",
      config.train.batch, config.model.context, micro_batch, config.train.total_batch,
      (config.train.total_batch / micro_batch + 1) * micro_batch);
}

}  // namespace

void validate(const RunConfig& config) {
  RunConfig copy = config;
  for (const Field& field : fields_of(copy)) check_rule(field, field.key);
  check_heads(config.model);
  check_total_batch(config);
}

}  // namespace tokamak
