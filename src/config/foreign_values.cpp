#include "config/foreign_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "config/suggest.h"

namespace tokamak {

namespace {

struct ForeignValue {
  std::string_view key, ours, theirs;  // theirs: as letters_of() leaves them, between blanks
};

constexpr ForeignValue kValues[] = {
    {"model.preset", "gpt2-124m", "gpt2 gpt2small gpt2base gpt124m gpt2117m gpt2125m gpt125m gpt3125m 124m d12"},
    {"model.preset", "gpt2-355m", "gpt2medium gpt2345m gpt2350m gpt3medium gpt3350m 355m 350m d24"},
    {"model.preset", "gpt2-774m", "gpt2large gpt2762m gpt3large gpt3760m 774m d36"},
    {"model.preset", "gpt2-1558m", "gpt2xl gpt215b gpt21500m gpt3xl gpt313b 1558m 15b d48"},
    {"model.preset", "gpt3-6.7b", "gptj gptj6b gpt36b"},
    {"model.preset", "gpt3-175b", "gpt3 gpt3davinci"},
    {"model.preset", "llama2-7b", "llama llama7b llama2 llama27bhf"},
    {"model.preset", "llama2-13b", "llama13b"},
    {"model.preset", "llama2-70b", "llama65b llama70b"},
    {"model.preset", "llama3-8b", "llama3 metallama38b metallama318b llama8b"},
    {"model.preset", "llama3-70b", "metallama370b metallama3170b"},
    {"model.preset", "llama3-405b", "metallama31405b llama31405b llama405b"},
    {"model.preset", "mistral-7b", "mistral mistral7bv01 mistral7bv03"},
    {"model.preset", "small", "tiny mini nano nanogpt babygpt shakespearechar"},
    {"compile.precision", "bf16", "bfloat16 bf16mixed bf16true mixedbf16 torchbfloat16"},
    {"compile.precision", "fp16", "float16 half 16 16mixed f16"},
    {"compile.precision", "fp32", "float32 float f32 32 32true full none no"},
    {"compile.precision", "tf32", "tensorfloat32 high"},
    {"compile.precision", "fp8", "float8 e4m3 fp8e4m3"},
    {"compile.recompute", "full", "true on yes block all checkpoint uniform"},
    {"optimizer.schedule", "cosine", "cosineannealing cosinewithwarmup warmupcosine linearwarmupcosine"},
    {"optimizer.schedule", "wsd", "trapezoidal trapezoid warmupstabledecay stable"},
    {"optimizer.schedule", "constant", "constantwithwarmup none fixed"},
    {"optimizer.schedule", "inverse_sqrt", "rsqrt noam"},
    {"model.activation", "relu2", "relusquared squaredrelu relusq sqrelu"},
    {"model.activation", "silu", "swish swiglu"},
    {"model.activation", "gelu", "gelunew gelutanh newgelu"},
    {"model.family", "gpt2", "gpt gpt3 nanogpt gpt2lmheadmodel"},
    {"model.family", "llama", "llama2 llama3 mistral qwen qwen2 qwen3 smollm llamaforcausallm"},
    {"mesh.schedule", "1f1b", "pipedream noninterleaved"},
    {"mesh.schedule", "interleaved", "interleaved1f1b vpp virtual"},
    {"mesh.schedule", "zero_bubble", "zb zbh1 zbv zerobubble zbvzerobubble interleavedzerobubble"},
    {"data.token_type", "uint16", "u16 int16 ushort"},
    {"data.token_type", "uint32", "u32 int32 int64 long"},
    {"device", "cuda", "gpu gpus nvidia"},
};

/// Lower-case letters and digits of the part behind the last slash.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (char c : name.substr(name.rfind('/') + 1))
    if (std::isalnum(static_cast<unsigned char>(c))) letters += char(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

bool has_word(std::string_view list, std::string_view word) {
  return (" " + std::string(list) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

bool has(const std::vector<std::string>& choices, std::string_view name) {
  return std::ranges::find(choices, name) != choices.end();
}

/// Those that have it in their names: "smollm" stands for two, "a100" for dgx-a100 and colab-a100.
std::string that_contain(std::string_view letters, const std::vector<std::string>& choices) {
  std::string list;
  for (const std::string& choice : choices)
    if (letters_of(choice).find(letters) != std::string::npos)
      list += fmt::format("{}'{}'", list.empty() ? "" : " or ", choice);
  return list;
}

std::string nearest(const std::string& letters, const std::vector<std::string>& choices) {
  std::vector<std::string> plain;
  for (const std::string& choice : choices) plain.push_back(letters_of(choice));
  std::string word = nearest_word(letters, plain);
  if (word.empty()) return "";
  return fmt::format("'{}'", choices[size_t(std::ranges::find(plain, word) - plain.begin())]);
}

}  // namespace

std::string value_hint(std::string_view key, std::string_view typed, const std::vector<std::string>& choices) {
  std::string letters = letters_of(typed);
  if (letters.empty()) return "";
  for (const ForeignValue& row : kValues)
    if (row.key == key && has_word(row.theirs, letters) && has(choices, row.ours))
      return fmt::format("; that is '{}' here", row.ours);
  constexpr size_t kTelling = 4;  // letters that one family of names has
  std::string meant = letters.size() >= kTelling ? that_contain(letters, choices) : "";
  if (meant.empty()) meant = nearest(letters, choices);
  return meant.empty() ? "" : fmt::format("; did you mean {}?", meant);
}

}  // namespace tokamak
