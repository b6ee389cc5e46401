// What `profile` and `train` do with the report of a profile.
#pragma once

#include <string>

#include "cli/machine.h"
#include "config/field.h"
#include "profile/report.h"

namespace tokamak {

struct ProfileOutput {
  int64_t kernels = 30;
  std::string json, trace, page;  // files; empty: none
};
void visit(FieldList& v, ProfileOutput& c);

/// UserError when one of the files cannot be written.
void check_files(const ProfileOutput& output);

/// Writes the files, with the command as it was typed; the tables for the terminal.
std::string write_profile(const ProfileOutput& output, const Machine& machine, const std::string& command,
                          ProfileReport& report);

}  // namespace tokamak
