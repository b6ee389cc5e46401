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

std::string_view why_removed(std::string_view key) {
  if (key == "mesh.halves")
    return "which computed a batch in two halves and is no more, as it gained 2% at most (docs/lab.md); leave it out";
  return {};
}

std::string_view present_pass(std::string_view name) {
  struct Renamed {
    std::string_view was, is;
  };
  constexpr Renamed kRenamed[] = {{"overlap_context", "overlap"},
                                  {"overlap_last", "overlap"},
                                  {"overlap_tensor", "overlap"},
                                  {"merge_duplicates", "eliminate_common_subexpressions"},
                                  {"eliminate_dead", "eliminate_dead_code"}};
  for (const Renamed& pass : kRenamed)
    if (pass.was == name) return pass.is;
  return name;
}

}  // namespace tokamak
