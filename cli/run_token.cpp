#include "cli/run_token.h"

#include <filesystem>

#include "base/frames.h"
#include "base/sha256.h"
#include "config/json.h"

namespace tokamak {

std::string run_token(const RunConfig& config, int world) {
  std::string folder = std::filesystem::absolute(config.train.out).lexically_normal().string();
  return sha256(encode_frame({to_json(config), folder, std::to_string(world)}));
}

}  // namespace tokamak
