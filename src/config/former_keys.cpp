#include "config/former_keys.h"

namespace tokamak {

std::string_view former_pass_switch(std::string_view key) {
  constexpr std::string_view kSection = "compile.";
  constexpr std::string_view kPasses[] = {"chunked_classifier", "flash_attention", "fuse", "fused_optimizer",
                                          "pad_vocab"};
  if (!key.starts_with(kSection)) return {};
  for (std::string_view pass : kPasses)
    if (key.substr(kSection.size()) == pass) return pass;
  return {};
}

}  // namespace tokamak
