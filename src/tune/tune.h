// What only measuring can tell, found before a run begins: how long the library's kernels take here, which matmul
// groups cost more than the simpler ones and the separate kernels that they stand for, and with fp8 which products are
// faster in 16 bits than in eight with all that these take. Tests: tests/tune/tune_test.cpp.
#pragma once

#include "backend/backend.h"
#include "graph/platform.h"

#include <span>
#include <string_view>

namespace tokamak {

class CodeAhead;
struct CompiledStep;
struct ResolvedRun;

enum class Measure : uint8_t {
  kChoices,  // what a choice between forms depends on
  kAll       // every kernel of a library, for predictions
};

/// The platform with measured_seconds and slow_forms for this run. What the file tuning.measurements remembers is
/// not measured again, and a choice that was made once for the same step stays. `kept`, what run_choices gave for this
/// run at an earlier start, comes before that file. While it measures, the backend compiles the step's other kernels
/// and those of trials in the background. Without a KernelTuning of the backend the platform comes back as it is.
/// Throws UserError, before anything is compiled or measured, when the run needs more memory than the backend has.
Platform tune(const ResolvedRun& run, Platform platform, Backend& backend, Measure measure = Measure::kAll,
              std::string_view kept = {});

/// Begins to compile what `tune`, where nothing is kept, would begin to compile on a platform like this one, which no
/// backend has yet. Throws what `code` throws, which is how to stop it.
void tune_ahead(const ResolvedRun& run, const Platform& expected, CodeAhead& code);

/// Lets the backend choose kernels for what other stages of a pipeline have and `stage` has not, so that run_choices
/// holds those as well. Nothing without a KernelTuning.
void choose_for_other_stages(std::span<const CompiledStep> stages, int64_t stage, Backend& backend);

/// Everything that was chosen by measurement, for a step and for the kernels that the backend has compiled, as text for
/// `tune` and adopt_choices: with it a later start gives the same bits, though the caches be cleared. Empty when
/// nothing was. `seconds`: with what was measured besides, for take_choices.
std::string run_choices(const Tuning& tuning, Backend& backend, bool seconds = false);

/// The same with what `kept`, such a text of this machine, has for other steps: those of other phases of train.ramp, or
/// of before a fallback, from whose checkpoints the run may yet go on.
std::string add_choices(std::string_view kept, const Tuning& tuning, Backend& backend);

/// Hands the backend its part of run_choices, before it compiles anything. False when they are of another kind of GPU
/// or of other libraries, or damaged; then nothing was taken over.
bool adopt_choices(std::string_view kept, const Tuning& tuning, Backend& backend);

/// The same, and the tuning's part as well: for a rank that compiles the step for which another has chosen.
bool take_choices(std::string_view chosen, Tuning& tuning, Backend& backend);

}  // namespace tokamak
