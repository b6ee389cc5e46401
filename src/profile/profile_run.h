// `tokamak profile`: a run's steps on all of its ranks, profiled. Tests: tests/profile/profile_run_test.cpp.
#pragma once

#include "exec/mesh_ranks.h"
#include "profile/report.h"

namespace tokamak {

struct ProfileRunOptions {
  ProfileOptions steps;
  bool is_gpu = false;
  bool traces = false;      // gives the report its trace
  bool reads_data = false;  // of data.path; else random tokens stand for it
};

/// Prepares the run as training does and takes steps of it, of which nothing is kept. All ranks of config.mesh call it;
/// the report of the one that leads is whole but for what only the caller knows: versions, command and date. UserError
/// where it does not fit.
ProfileReport profile_run(const RunConfig& config, const Platform& platform, Backend& backend, const MeshRanks* ranks,
                          const ProfileRunOptions& options);

}  // namespace tokamak
