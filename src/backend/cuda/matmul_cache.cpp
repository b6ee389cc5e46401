#include "backend/cuda/matmul_cache.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <cctype>
#include <charconv>

namespace tokamak::cuda {
namespace {

using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr size_t kDigits = 16;  // of one word

std::string to_hex(const std::array<uint64_t, 8>& words) {
  std::string hex;
  for (uint64_t word : words) hex += fmt::format("{:016x}", word);
  return hex;
}

std::optional<std::array<uint64_t, 8>> from_hex(const std::string& hex) {
  std::array<uint64_t, 8> words{};
  if (hex.size() != words.size() * kDigits) return std::nullopt;
  for (size_t i = 0; i < words.size(); ++i) {
    const char *begin = hex.data() + i * kDigits, *end = begin + kDigits;
    auto [stop, error] = std::from_chars(begin, end, words[i], 16);
    if (error != std::errc() || stop != end) return std::nullopt;
  }
  return words;
}

std::filesystem::path file_of(const std::filesystem::path& folder, const MatmulMachine& machine) {
  std::string device = machine.device;
  for (char& c : device)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return folder / fmt::format("matmul-{}-{}.json", device, machine.library_version);
}

}  // namespace

std::string print_matmul_choices(const MatmulMachine& machine, const MatmulChoices& choices) {
  ordered_json problems = ordered_json::object();
  for (const auto& [problem, choice] : choices)
    problems[problem] = {{"algorithm", to_hex(choice.algorithm)},
                         {"seconds", choice.seconds},
                         {"tflops", choice.tflops},
                         {"runner_up_tflops", choice.runner_up_tflops},
                         {"tried", choice.tried}};
  ordered_json file = {
      {"format", kFormat}, {"device", machine.device}, {"cublaslt", machine.library_version}, {"matmuls", problems}};
  return format_json(file, 1) + "\n";
}

std::optional<MatmulChoices> parse_matmul_choices(const MatmulMachine& machine, std::string_view text) {
  try {
    ordered_json file = parse_ordered_json(text);
    if (file.at("format") != kFormat || file.at("device") != machine.device ||
        file.at("cublaslt") != machine.library_version || !file.at("matmuls").is_object())
      return std::nullopt;
    MatmulChoices choices;
    for (const auto& [problem, entry] : file.at("matmuls").items()) {
      auto algorithm = from_hex(entry.at("algorithm").get<std::string>());
      if (!algorithm) return std::nullopt;
      choices[problem] = {*algorithm, entry.at("seconds").get<double>(), entry.value("tflops", 0.0),
                          entry.value("runner_up_tflops", 0.0), entry.value("tried", int64_t(0))};
    }
    return choices;
  } catch (const ordered_json::exception&) {
    return std::nullopt;
  }
}

MatmulCache::MatmulCache(const std::filesystem::path& folder, MatmulMachine machine) : machine_(std::move(machine)) {
  if (folder.empty()) return;
  path_ = file_of(folder, machine_);
  choices_ = read();
}

MatmulChoices MatmulCache::read() const {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) return {};
  try {
    return parse_matmul_choices(machine_, read_file(path_)).value_or(MatmulChoices());
  } catch (const UserError&) {
    return {};
  }
}

const MatmulChoice* MatmulCache::find(const std::string& problem) {
  auto at = choices_.find(problem);
  if (at == choices_.end()) return nullptr;
  used_[problem] = at->second;
  return &at->second;
}

void MatmulCache::put(const std::string& problem, const MatmulChoice& choice) {
  choices_[problem] = choice;
  unsaved_[problem] = choice;
  used_[problem] = choice;
}

std::string MatmulCache::print_used() const { return print_matmul_choices(machine_, used_); }

bool MatmulCache::adopt(std::string_view text) {
  std::optional<MatmulChoices> adopted = parse_matmul_choices(machine_, text);
  if (!adopted) return false;
  for (const auto& [problem, choice] : *adopted) choices_[problem] = used_[problem] = choice;
  return true;
}

void MatmulCache::save() {
  if (unsaved_.empty() || path_.empty()) return;
  MatmulChoices all = read();
  for (const auto& [problem, choice] : std::exchange(unsaved_, {})) all[problem] = choice;
  try {
    make_folder(path_.parent_path());
    write_shared_file(path_, print_matmul_choices(machine_, all));
  } catch (const UserError&) {
  }
}

}  // namespace tokamak::cuda
