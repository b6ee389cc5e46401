// The members of an uncompressed tar archive, found by reading their headers only: POSIX ustar and pax, and GNU's long
// names and large sizes. Tests: tests/data/sources/tar_tokens_test.cpp.
#pragma once

#include <functional>
#include <string>

#include "base/file.h"

namespace tokamak {

struct TarMember {
  std::string name;
  int64_t offset = 0;  // of its content
  int64_t bytes = 0;
};

/// Calls `use` with every regular file of the archive, in order. UserErrors name the archive and the place: no tar,
/// a damaged header, a member or the end marker cut short, a sparse member.
void for_each_tar_member(const FileReader& file, const std::function<void(const TarMember&)>& use);

}  // namespace tokamak
