// A day in seconds, for what people count in days.
#pragma once

namespace tokamak {

inline constexpr double kDay = 24 * 3600;

}  // namespace tokamak
