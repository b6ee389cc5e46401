// A profile as one self-contained HTML page: no script, nothing from the network. Tests:
// tests/pages/profile_page_test.cpp.
#pragma once

#include "profile/report.h"

#include <string>

namespace tokamak {

std::string profile_page(const ProfileReport& report);

}  // namespace tokamak
