// Lines of tasks: each kind gives a question whose right answer is one of its texts, the same one twice, or an error.
#include "base/error.h"
#include "evaluate/task.h"
#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

namespace {

bool are_alike(const Question& a, const Question& b) {
  bool alike = a.right == b.right && a.texts.size() == b.texts.size();
  for (size_t i = 0; alike && i < a.texts.size(); ++i)
    alike = a.texts[i].context == b.texts[i].context && a.texts[i].continuation == b.texts[i].continuation;
  return alike;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view line(reinterpret_cast<const char*>(data), size);
  for (const TaskFormat& format : task_formats()) {
    if (!format.read) continue;
    try {
      Question question = format.read(line, "fuzz");
      bool is_choice = format.answer == Answer::kChoice;
      if (is_choice ? question.texts.size() < 2 : question.texts.size() != 1) fuzz_failure("another number of texts");
      if (question.right < 0 || question.right >= int64_t(question.texts.size())) fuzz_failure("no text is right");
      if (!are_alike(question, format.read(line, "fuzz"))) fuzz_failure("another question the second time");
    } catch (const UserError&) {
    }
  }
  return 0;
}
