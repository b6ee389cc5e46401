// `tokamak profile`: a run's steps on all of its ranks, profiled. Tests: tests/profile/profile_run_test.cpp.
#pragma once

#include "checkpoint/checkpoint.h"
#include "exec/mesh_ranks.h"
#include "profile/report.h"

namespace tokamak {

struct ProfileRunOptions {
  ProfileOptions steps;
  bool is_gpu = false;
  bool traces = false;      // gives the report its trace
  bool reads_data = false;  // of data.path; else random tokens stand for it
};

/// Prepares the run as training does and takes steps of it, of which nothing is kept. With `found` they are those
/// behind that checkpoint, of its parameters and states and with the data at its place, if it is read. All ranks of
/// config.mesh call it; the report of the one that leads is whole but for what only the caller knows: versions, command
/// and date. UserError where it does not fit, or is not the run of the checkpoint.
ProfileReport profile_run(const RunConfig& config, const Platform& platform, Backend& backend, const MeshRanks* ranks,
                          const ProfileRunOptions& options, const FoundCheckpoint* found = nullptr);

/// Whether the backend replays the session's steps, which a profile keeps it from.
bool replays_steps(const Session& session, bool is_gpu);

/// What they say together; all ranks call it.
ProfileReport gather_report(Session& session, const StepProfile& profile, const Platform& platform,
                            const MeshRanks* ranks, const ProfileRunOptions& options);

}  // namespace tokamak
