// `tokamak import`: a model in Hugging Face's form, checked and copied.
#include <filesystem>

#include "base/error.h"
#include "checkpoint/hugging_face_folder.h"
#include "cli/commands.h"
#include "cli/model_folder.h"

namespace tokamak {
namespace {

struct ImportArguments {
  std::string model, folder;
  ModelFolderOptions options;
};

void visit(FieldList& v, ImportArguments& c) {
  v.positional("model", c.model, "folder with a model in Hugging Face's form");
  v.positional("folder", c.folder, "folder to make");
  visit(v, c.options);
}

int run_import(const ImportArguments& arguments) {
  std::optional<FoundCheckpoint> model = open_hugging_face(arguments.model);
  if (!model)
    user_error("[import] {}: expected a folder with the config.json of a model in Hugging Face's form, got {}",
               arguments.model,
               std::filesystem::exists(arguments.model) ? "none; `tokamak export` takes runs; else check the path"
                                                        : "nothing; check the path");
  return write_model_folder(*model, arguments.folder, arguments.options);
}

}  // namespace

Command import_command() {
  return make_command<ImportArguments>(
      "import", "check and copy a model in Hugging Face's form, to train from, evaluate and generate with",
      "  tokamak import gpt2 model\n"
      "  tokamak train --model.from=model --data.path=data\n\n"
      "Every tensor must be there once, with its shape and finite numbers. `train --model.from`, `eval` and "
      "`generate`\n"
      "also take such folders as they are.",
      run_import);
}

}  // namespace tokamak
