#include "run/choices_file.h"

#include "base/error.h"
#include "base/file.h"

#include <fmt/format.h>

namespace tokamak {

namespace {

// What cannot be read is chosen anew.
std::string read_choices(const std::filesystem::path& path, TrainObserver& observer) {
  try {
    return read_file(path);
  } catch (const UserError& error) {
    observer.message(fmt::format(
        "warning: {}; kernels are chosen anew, and the last bits of the run may differ from now on", error.what()));
    return {};
  }
}

}  // namespace

Platform ChoicesFile::tune(const ResolvedRun& run, const Platform& platform, Backend& backend, bool goes_on,
                           TrainObserver& observer) {
  std::error_code error;
  if (goes_on && backend.tuning() && std::filesystem::exists(path_, error)) text_ = read_choices(path_, observer);
  if (!text_.empty() && !adopt_choices(text_, platform.tuning, backend))
    observer.message(
        fmt::format("warning: {} holds what was chosen for another kind of GPU or other libraries; they choose anew "
                    "here, and the last bits of the run may differ from now on",
                    path_.string()));
  return tokamak::tune(run, platform, backend, Measure::kChoices, text_);
}

void ChoicesFile::save(const Tuning& tuning, Backend& backend) {
  std::string text = add_choices(text_, tuning, backend);
  if (text == text_) return;
  write_file_atomic(path_, text);
  text_ = text;
}

}  // namespace tokamak
