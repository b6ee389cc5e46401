// Checkpoints: folders <out>/checkpoints/step_00000010 that appear whole or not at all, with model.safetensors
// (parameters under Hugging Face's GPT-2 names), optimizer.safetensors (every other state of the run) and state.json
// (where the run stands, and the checksums of the other two). Tests: tests/checkpoint/checkpoint_test.cpp,
// tests/errors.
#pragma once

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/known_good.h"
#include "exec/program.h"  // TensorStore

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

/// Where a run stands, apart from its tensors.
struct CheckpointState {
  int64_t step = 0;           // optimizer steps done
  int64_t tokens = 0;         // seen so far
  int64_t data_position = 0;  // the loader's: number of the next sample
  int64_t seed = 0;
  std::string config_json;  // a JSON object; reading gives it back with other white space
  std::string tokenizer;    // fingerprint; empty: trained without one
  std::string data_json;    // a DataRecord (data/ledger_record.h); empty in checkpoints of older versions
  std::string ledger;       // the chain of the ledger's last line when it was saved; empty: not known
  std::string validation;   // the checksum of the validation data's files; empty: there was none, or not known
  KnownGoodState good;      // of the steps so far
  int64_t best = 0;         // step of the checkpoint that is kept as the best of those before; 0: none is
  bool is_extra = false;    // saved as the best alone, beside those that are saved every so many steps
  /// Texts for other programs, by file name, that lie beside the tensors (checkpoint/hugging_face_files.h). What is
  /// read does not have them.
  std::map<std::string, std::string> for_others = {};
};

/// Which checkpoints stay, beside the one known to be good and the best: the last written that are not extra, and those
/// whose step is a multiple.
struct KeepRule {
  KeepRule(int64_t last, int64_t every = 0) : last(last), every(every) {}
  int64_t last;   // < 1: all stay
  int64_t every;  // 0: none
};

struct FoundCheckpoint {
  std::filesystem::path path;
  CheckpointState state;
  /// Its files by name, open and compared with their checksums: they can be read even if a training run removes the
  /// checkpoint meanwhile.
  std::map<std::string, std::shared_ptr<const CheckpointFile>> files = {};
  /// What the parameter that a tensor of these files holds is called here; empty: it holds none. Null: the same.
  std::function<std::string(std::string_view tensor)> parameter_name = {};
};

/// Writes the folder for state.step, syncs it, gives it its name, then the link `latest`, then removes all but those
/// that `keep` says, and what killed processes left behind. Tensors have their global shape there
/// (graph/argument_spec.h): padding is cut. Scratch (is_scratch) is not saved. Throws UserError (disk full, no
/// permission, numbers that are not finite); earlier checkpoints are untouched then. The ranks of a mesh all call it;
/// each writes what it owns, or where they share no folders the one that leads writes all. Returns the folder.
std::filesystem::path save_checkpoint(const std::filesystem::path& out, const CheckpointState& state,
                                      const TensorStore& store, const KeepRule& keep);

/// After a process that may have been killed while it saved: removes what it left behind, makes `latest` point to the
/// checkpoint that was found, and removes those that are too many, as save_checkpoint() does, unless newer ones are
/// damaged.
void repair_checkpoints(const std::filesystem::path& out, const std::optional<FoundCheckpoint>& found,
                        const KeepRule& keep);

/// Removes all but those that `keep` says and those of steps `good` and `best` (0: none).
void remove_old_checkpoints(const std::filesystem::path& out, const KeepRule& keep, int64_t good, int64_t best = 0);

/// The checkpoint of `out` that was written last and is good: every checksum is compared. Those that a training run
/// writes and removes meanwhile are no matter: then it is looked for anew. Damaged ones are skipped with
/// a line in `warnings`. Nothing when there is none at all; UserError when there are some and all are damaged.
std::optional<FoundCheckpoint> find_checkpoint(const std::filesystem::path& out, std::vector<std::string>* warnings);

/// The same without looking at its tensors, whose files are not opened and may turn out to be damaged.
std::optional<FoundCheckpoint> peek_checkpoint(const std::filesystem::path& out);

/// What the user named, for its model alone (the optimizer's file is not looked at): a checkpoint's folder or the link
/// `latest` (UserError if it is damaged), or a run folder or its folder of checkpoints (the newest good one; UserError
/// if it has none), or a folder with a model in Hugging Face's form (checkpoint/hugging_face_folder.h).
FoundCheckpoint open_checkpoint(const std::filesystem::path& path, std::vector<std::string>* warnings);

/// The same with the optimizer's file, where there is one, and without comparing checksums: to look at what is there.
FoundCheckpoint open_unverified(const std::filesystem::path& path);

/// Without comparing checksums, for what is told of the model; a checkpoint's tensors are not opened.
FoundCheckpoint peek_model(const std::filesystem::path& path);

/// state.json of a checkpoint's folder, checked. UserError when it is absent or damaged.
CheckpointState read_state(const std::filesystem::path& checkpoint);

/// Compares both tensor files with their checksums; UserError naming the damaged file.
void verify_checkpoint(const std::filesystem::path& checkpoint);

/// Fills the parameters of the store; it and the files may have them in f32, bf16 or f16; padding becomes zero. Each
/// one there must be in the file, and the other way round. The file's checksum is compared first, so the store is
/// untouched when the file is damaged. UserError when the file holds another model: the first differing tensor, both
/// shapes, what to do.
void load_parameters(const FoundCheckpoint& checkpoint, TensorStore& store);
void load_parameters(const std::filesystem::path& checkpoint, TensorStore& store);

/// The same for the other states, but for those of loss scaling, which may be missing on either side.
void load_optimizer(const FoundCheckpoint& checkpoint, TensorStore& store);
void load_optimizer(const std::filesystem::path& checkpoint, TensorStore& store);

}  // namespace tokamak
