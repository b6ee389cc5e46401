// The folder of unfinished work inside the output folder of `prepare`: one process at a time works in it, and what is
// finished moves from it to its place. Tests: tests/data/prepare_folder_test.cpp.
#pragma once

#include <filesystem>
#include <functional>

#include "base/file.h"
#include "data/prepare_journal.h"

namespace tokamak {

/// Whether a file is a shard or unfinished work of `prepare` in the output folder `out`: no input, though a folder that
/// is searched may hold it.
bool is_output_of_prepare(const std::filesystem::path& file, const std::filesystem::path& out);

class PrepareFolder {
 public:
  /// Makes both folders; a UserError if another process works there, if it is a link, or if something is in it that
  /// `prepare` does not make (data/prepare_names.h), which would be removed.
  explicit PrepareFolder(const std::filesystem::path& out);

  const std::filesystem::path& path() const { return path_; }

  /// Removes everything in it but the names of what an interrupted publish() was replacing.
  void clear();

  /// The first file that publish() would move, or has moved, and that is not as the journal says; empty if all are.
  /// `pause` is called before each.
  std::filesystem::path find_damage(const PrepareJournal& journal, const std::function<void()>& pause) const;

  /// Moves files to the output folder in the journal's order, the index last, in place of the data set that was there.
  /// May be interrupted anywhere and called again, also by another run: then what has moved already is left out.
  /// `pause` is called before each step.
  void publish(const PrepareJournal& journal, const std::function<void()>& pause);

  /// Removes it, after publish() or where it holds nothing of use. The output folder goes too if nothing else is in it
  /// and it was made here.
  void remove();

 private:
  void check_content() const;
  void remove_replaced_files(const PrepareJournal& journal);

  std::filesystem::path out_;
  std::filesystem::path path_;
  bool made_out_;
  FileDescriptor lock_;
};

}  // namespace tokamak
