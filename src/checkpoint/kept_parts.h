// Which parts of a checkpoint in memory a machine has (checkpoint/kept_save.h), and how machines that are left put
// their parts together. Tests: tests/mesh/kept_save_test.cpp.
#pragma once

#include "checkpoint/peer_copies.h"
#include "checkpoint/shared_save.h"

namespace tokamak {

/// Bytes of one of its files.
struct KeptRange {
  std::string file;
  int64_t begin = 0, bytes = 0;
};

/// What one rank wrote.
struct KeptPart {
  std::vector<KeptRange> ranges;
};

/// Beside the checkpoint's files: the part of a rank, and the hosts of all ranks that have one.
void write_part(const std::filesystem::path& checkpoint, int rank, KeptPart part);
void write_part_hosts(const std::filesystem::path& checkpoint, const std::vector<std::string>& hosts);

/// Among machines that go on together.
struct KeptMachines {
  const RankMachines& machines;
  Communicator* links;       // as PeerCopies has them; null: one machine
  const Exchange& exchange;  // of all ranks
};

/// Of the kept checkpoints of all machines the newest of which no part is lost, if it is of a later step than `saved`,
/// is whole on each of them on return; the others are removed. Of newer ones `warnings` gets a line that says what is
/// lost. All ranks call it at the same time.
void gather_kept_parts(const std::filesystem::path& folder, int64_t saved, const KeptMachines& all,
                       std::vector<std::string>* warnings);

}  // namespace tokamak
