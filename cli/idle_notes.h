// What a run's settings cannot do on this machine (config/idle_settings.h).
#pragma once

#include <string>
#include <vector>

#include "config/command_line.h"

namespace tokamak {

struct RunConfig;
struct Target;

enum class NotesFor : uint8_t { kTraining, kStep };

/// A line for each; `run` has the sizes of its mesh.
std::vector<std::string> idle_notes(const RunConfig& run, const GivenOptions& given, const Target& target, bool is_gpu,
                                    NotesFor use);

}  // namespace tokamak
