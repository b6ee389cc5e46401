// `tokamak export`: the model of a run as a folder by itself.
#include "checkpoint/averaged_weights.h"
#include "cli/commands.h"
#include "cli/model_folder.h"
#include "cli/streams.h"

namespace tokamak {
namespace {

struct ExportArguments {
  std::string run, folder;
  std::string weights = kLastWeights;
  ModelFolderOptions options;
};

void visit(FieldList& v, ExportArguments& c) {
  v.positional("run", c.run, "run folder, checkpoint or model in Hugging Face's form");
  v.positional("folder", c.folder, "folder to make");
  v("weights", c.weights, "which of them: last, or ema, the mean over steps that optimizer.ema keeps",
    one_of({kLastWeights, kAveragedWeights}));
  visit(v, c.options);
}

int run_export(const ExportArguments& arguments) {
  std::vector<std::string> warnings;
  FoundCheckpoint checkpoint = with_weights(open_checkpoint(arguments.run, &warnings), arguments.weights);
  for (const std::string& warning : warnings) print_warning(warning);
  return write_model_folder(checkpoint, arguments.folder, arguments.options);
}

}  // namespace

Command export_command() {
  return make_command<ExportArguments>(
      "export", "the model of a run as a folder for other programs, in Hugging Face's form",
      "  tokamak export run model --type=bf16 --shard-mib=4096\n\n"
      "config.json, generation_config.json, the tensors and the tokenizer, without the optimizer's states. The folder\n"
      "appears when it is complete.",
      run_export);
}

}  // namespace tokamak
