// A checkpoint that all ranks of a mesh write at once, each what is its own, into the places of the files that it has
// under any mesh. No rank ever has a whole tensor. Tests: tests/mesh/shared_save_test.cpp.
#pragma once

#include "base/placed_file.h"
#include "checkpoint/staged_checkpoint.h"
#include "checkpoint/state_slices.h"

#include <memory>

namespace tokamak {

/// How ranks speak with each other while they save: Communicator::exchange, or that of a channel.
using Exchange = std::function<std::vector<std::string>(std::string_view mine)>;

class SharedSave {
 public:
  /// Rank 0 makes the folder under a temporary name with both files in it, and all open them: what is written from here
  /// on is written to these, whatever happens to their names. Null where not all ranks see what rank 0 has made, as on
  /// machines that share no folders; unless each rank names the first one of its machine as `maker`, and the folder is
  /// the machine's own. All ranks call it at the same time; UserError, the same on all of them.
  static std::unique_ptr<SharedSave> begin(const std::filesystem::path& out, const CheckpointState& state,
                                           const TensorStore& store, const Exchange& exchange, int maker = 0);

  const std::vector<StateFile>& files() const { return files_; }
  /// Where tensors lie in them.
  const SafetensorsLayout& layout(size_t file) const { return places_[file].layout; }
  /// Under a temporary name.
  const std::filesystem::path& folder() const { return folder_; }

  /// Writes and syncs this rank's slices, on any thread. What it has to tell rank 0: checksums, or an error.
  std::string write(const std::vector<StateSlice>& slices, const ReadSlice& read);

  /// Elements of a slice, also of another rank's, from its element `at` on.
  void place(const StateSlice& slice, int64_t at, std::span<const std::byte> piece);

  /// On rank 0, when all have written, with what they told, no error: writes the rest, and gives the folder its name
  /// and the link `latest`; removes what `keep` does not say.
  void finish(const std::vector<std::string>& reports, const KeepRule& keep);
  /// On another maker: with the state.json that rank 0 has written, and nothing is removed.
  void finish_like(const std::string& record);

 private:
  using TakeRun = std::function<void(int64_t whole, std::span<const std::byte> elements)>;

  struct File {
    SafetensorsLayout layout;
    std::unique_ptr<PlacedFile> opened;
  };

  SharedSave(std::filesystem::path out, CheckpointState state, std::vector<StateFile> files);
  std::string make_files();
  bool open_files(const std::string& told);
  uint64_t write_slice(const StateSlice& slice, const ReadSlice& read);
  void for_runs(const StateSlice& slice, int64_t at, std::span<const std::byte> piece, const TakeRun& take);
  int64_t element_bytes(const StateSlice& slice) const;
  void remove_token() const;
  std::vector<FileRecord> records(const std::vector<std::string>& reports) const;

  std::filesystem::path out_, folder_;
  CheckpointState state_;
  std::vector<StateFile> files_;
  std::vector<File> places_;                  // of files_
  std::unique_ptr<StagedCheckpoint> staged_;  // of the maker
};

/// The second part of a save, on any thread: writes what `read` gives of owned_slices(). On return the checkpoint is
/// whole and on the disk. UserErrors are those of save_checkpoint, the same on all ranks.
using CompleteSave = std::function<void(const std::vector<StateSlice>& slices, const ReadSlice& read)>;

/// The first part, of one rank or of all at the same time. `exchange`: for both parts, which come one after the other.
/// Nothing where ranks share no folders.
CompleteSave begin_save(const std::filesystem::path& out, const CheckpointState& state, const TensorStore& store,
                        const KeepRule& keep, Exchange exchange);

/// Both at once. False: ranks share no folders, and nothing is saved.
bool save_in_slices(const std::filesystem::path& out, const CheckpointState& state, const TensorStore& store,
                    const KeepRule& keep);

}  // namespace tokamak
