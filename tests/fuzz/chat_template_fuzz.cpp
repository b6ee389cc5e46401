// Chat templates: the source is a template of the language's part that is known, or an error; rendered it gives the
// same text twice, with pieces of answers that lie in it in order.
#include "data/chat_template.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

namespace {

const nlohmann::json& messages() {
  static const nlohmann::json kMessages = {{{"role", "system"}, {"content", " s "}},
                                           {{"role", "user"}, {"content", "q\n"}},
                                           {{"role", "assistant"}, {"content", "a"}}};
  return kMessages;
}

bool are_in_order(const RenderedChat& chat) {
  size_t end = 0;
  for (const TextSpan& span : chat.generated) {
    if (span.begin >= span.end || span.end > chat.text.size()) return false;
    end = std::max(end, span.end);
  }
  return end <= chat.text.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    ChatTemplate chat(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz", "<s>", "</s>");
    for (bool prompt : {false, true}) {
      RenderedChat once = chat.render(messages(), prompt), again = chat.render(messages(), prompt);
      if (once.text != again.text || once.generated != again.generated) fuzz_failure("another text the second time");
      if (!are_in_order(once)) fuzz_failure("an answer that lies outside of the text");
      if (!once.generated.empty() && !chat.marks_answers()) fuzz_failure("an answer without its tags");
    }
  } catch (const UserError&) {
  }
  return 0;
}
