// The ladder's meshes as a table for the terminal. Tests: tests/ladder/ladder_report_test.cpp.
#pragma once

#include "ladder/mesh_ladder.h"

namespace tokamak {

/// Lines of at most 120 columns; of a rung that did not run, as many as its reason takes.
std::string format_mesh_header();
std::string format_mesh_result(const MeshResult& result);
/// What the columns mean, below the table. `best`: the rung of one rank that they are compared with.
std::string format_mesh_legend(const RungResult& best);

/// "3.91", and "97.8%"; "-" where one rank had no run to compare with. "1.24", or "-" where it was not measured.
std::string format_speedup(const MeshResult& result);
std::string format_efficiency(const MeshResult& result);
std::string format_exposed(const MeshResult& result);

}  // namespace tokamak
