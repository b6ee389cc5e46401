#include "cli/model_folder.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/printable.h"
#include "base/signals.h"
#include "checkpoint/export_model.h"
#include "checkpoint/run_folder.h"
#include "cli/progress_line.h"
#include "config/visit.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace {

constexpr const char* kAsStored = "stored";

std::optional<ExportedModel> write_with_progress(const FoundCheckpoint& checkpoint, const Tokenizer* tokenizer,
                                                 const std::string& folder, ExportOptions options) {
  StopSignal stop("stopping; again to quit now\n");
  ProgressLine line;
  options.progress = [&](int64_t done, int64_t total) { line.show_bytes("writing", done, total); };
  options.stop = [&] { return stop.requested(); };
  try {
    return export_model(checkpoint, tokenizer, folder, options);
  } catch (const UserError& error) {
    if (!stop.requested()) throw;
    line.note(error.what());
    return std::nullopt;
  }
}

}  // namespace

void visit(FieldList& v, ModelFolderOptions& c) {
  v("type", c.type, "of the tensors; stored: as they are", one_of({kAsStored, "f32", "bf16", "f16"}));
  v("shard_mib", c.shard_mib, "MiB of tensors in a file at most, with an index; 0: one file", between(0, 1 << 20));
  v("vocab", c.vocab,
    "tokenizer that has the model's tokens and added ones: the model gets rows for them, the mean of the others; "
    "empty: "
    "its own");
  v("replace", c.replace, "replace the files of a model that are in the folder");
}

int write_model_folder(const FoundCheckpoint& checkpoint, const std::string& folder,
                       const ModelFolderOptions& options) {
  ExportOptions how{.shard_bytes = options.shard_mib << 20, .replace = options.replace};
  if (options.type != kAsStored) how.type = parse_dtype(options.type);
  std::shared_ptr<const Tokenizer> tokenizer = load_model_tokenizer(checkpoint.path);
  std::optional<Tokenizer> more;
  if (!options.vocab.empty()) how.grow_to = &more.emplace(load_tokenizer(options.vocab));
  std::optional<ExportedModel> model = write_with_progress(checkpoint, tokenizer.get(), folder, how);
  if (!model) return stopped_status();
  fmt::print("{}: {} parameters in {} tensors, {}, {} bytes in {} file{}; {}\n", printable(folder), model->parameters,
             model->tensors, dtype_name(model->type), model->bytes, model->files, model->files == 1 ? "" : "s",
             more        ? fmt::format("a tokenizer of {} tokens", more->vocab_size())
             : tokenizer ? fmt::format("a tokenizer of {} tokens", tokenizer->vocab_size())
                         : "no tokenizer");
  return 0;
}

}  // namespace tokamak
