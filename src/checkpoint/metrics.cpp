#include "checkpoint/metrics.h"

#include "base/error.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

struct SortedLines {
  std::string kept;
  std::string damaged;  // no JSON object, or of a step that a line before it tells of
  int64_t num_damaged = 0;
  int64_t reached = 0;  // the largest step of all lines
  int64_t next = 1;     // the step that should come next
  int64_t missing = 0;  // steps that no line tells of,
  int64_t first_missing = 0;
  ValLosses val_losses;
};

// Nothing where there is none that a run may reach.
std::optional<int64_t> step_of(const ordered_json& line) {
  constexpr int64_t kMostSteps = int64_t(1) << 38;
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) return std::nullopt;
  auto step = line["step"].get<int64_t>();
  return step < 0 || step > kMostSteps ? std::nullopt : std::optional(step);
}

std::optional<uint64_t> digest_of(const ordered_json& line) {
  auto at = line.find("digest");
  if (at == line.end() || !at->is_string()) return std::nullopt;
  const auto& text = at->get_ref<const std::string&>();
  uint64_t digest = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), digest, 16);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(digest) : std::nullopt;
}

// What was no number is null.
void add_val_loss(ValLosses& losses, int64_t step, const ordered_json& line) {
  auto at = line.find("val_loss");
  if (at != line.end()) losses.push_back({step, at->is_number() ? at->get<double>() : std::nan("")});
}

void skip_to(SortedLines& lines, int64_t step) {
  if (step > lines.next && lines.missing == 0) lines.first_missing = lines.next;
  lines.missing += std::max<int64_t>(step - lines.next, 0);
  lines.next = std::max(lines.next, step);
}

std::string_view last_line(std::string_view text) {
  if (text.empty()) return text;
  size_t before = text.substr(0, text.size() - 1).rfind('\n');
  return text.substr(before + 1);  // npos + 1 is 0
}

bool lacks_val_loss(std::string_view line, int64_t step) {
  ordered_json object = parse_ordered_json(line);
  return object.is_object() && object.value("step", ordered_json()) == step && !object.contains("val_loss");
}

// Drops lines of later steps and what is torn. A whole line without a step is no line of ours: not ours to drop.
SortedLines sort_lines(std::string_view text, int64_t last_step) {
  SortedLines lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    std::string_view line = text.substr(begin, end + 1 - begin);
    ordered_json object = parse_ordered_json(line);
    std::optional<int64_t> told = step_of(object);
    bool has_step = told.has_value();
    int64_t step = told.value_or(0);
    lines.reached = std::max(lines.reached, step);
    if (step > last_step) continue;
    if (!object.is_object() || (has_step && step < lines.next)) {
      lines.damaged += line;
      ++lines.num_damaged;
      continue;
    }
    lines.kept += line;
    if (has_step) skip_to(lines, step);
    if (has_step) ++lines.next;
    if (has_step) add_val_loss(lines.val_losses, step, object);
  }
  skip_to(lines, last_step + 1);
  return lines;
}

}  // namespace

std::map<int64_t, StepMetrics> read_metrics(const fs::path& metrics) {
  std::map<int64_t, StepMetrics> steps;
  if (std::error_code absent; !fs::exists(metrics, absent)) return steps;
  std::string text = read_file(metrics, kLargeFile);
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    ordered_json line = parse_ordered_json(std::string_view(text).substr(begin, end - begin));
    std::optional<int64_t> step = step_of(line);
    if (!step) continue;
    auto number = [&](const char* key) {
      auto at = line.find(key);
      return at != line.end() && at->is_number() ? at->get<double>() : std::nan("");
    };
    StepMetrics& told = steps[*step];
    told = {.step = *step,
            .loss = number("loss"),
            .grad_norm = number("grad_norm"),
            .ms = number("ms"),
            .wall_seconds = number("wall_seconds")};
    if (line.contains("val_loss")) told.val_loss = number("val_loss");
    told.digest = digest_of(line);
  }
  return steps;
}

double usual_step_seconds(const fs::path& metrics) {
  constexpr size_t kFewest = 12;
  std::vector<double> ms;
  std::string text = read_file(metrics, kLargeFile);
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    ordered_json line = parse_ordered_json(std::string_view(text).substr(begin, end - begin));
    if (step_of(line) && line.contains("ms") && line["ms"].is_number()) ms.push_back(line["ms"].get<double>());
  }
  if (ms.size() < kFewest)
    user_error("[{}] expected {} steps or more to know how long one takes, got {}; let the run go on", metrics.string(),
               kFewest, ms.size());
  ms.erase(ms.begin(), ms.begin() + int64_t(ms.size() / 3));
  auto middle = ms.begin() + int64_t(ms.size() / 2);
  std::nth_element(ms.begin(), middle, ms.end());
  return 1e-3 * *middle;
}

std::string format_metrics(const StepMetrics& m) {
  ordered_json object = {{"step", m.step},
                         {"loss", m.loss},
                         {"grad_norm", m.grad_norm},
                         {"lr", m.lr},
                         {"ms", m.ms},
                         {"tokens_per_second", m.tokens_per_second},
                         {"model_gflops", m.model_gflops},
                         {"mfu", m.mfu},
                         {"data_wait_ms", m.data_wait_ms},
                         {"wall_seconds", m.wall_seconds}};
  if (!m.applied) object["applied"] = false;
  if (m.val_loss) object["val_loss"] = *m.val_loss;
  for (const TaskMetric& metric : m.tasks) object["tasks"][metric.task][metric.name] = metric.value;
  if (m.memory_mib) object["memory_mib"] = std::round(*m.memory_mib * 10) / 10;
  if (m.loss_scale) object["loss_scale"] = *m.loss_scale;
  if (m.skipped) object["skipped"] = *m.skipped;
  if (m.shadow)
    object["shadow"] = {
        {"loss", m.shadow->loss},      {"bf16_loss", m.shadow->bf16_loss},   {"cosine", m.shadow->cosine},
        {"least", m.shadow->least},    {"least_kind", m.shadow->least_kind}, {"saturated", m.shadow->saturated},
        {"cosines", m.shadow->cosines}};
  if (m.digest) object["digest"] = fmt::format("{:016x}", *m.digest);
  return object.dump();
}

MetricsWriter::MetricsWriter(const fs::path& path, std::optional<int64_t> resumed_step) : path_(path) {
  if (!resumed_step) {
    write_file_atomic(path, "");
  } else if (fs::exists(path)) {
    repair(*resumed_step);
  }
  fd_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!fd_.is_open()) file_error("write", path, errno);
  size_ = ::lseek(fd_.get(), 0, SEEK_END);
}

void MetricsWriter::repair(int64_t resumed_step) {
  std::string text = read_file(path_, kLargeFile);
  SortedLines lines = sort_lines(text, resumed_step);
  reached_ = lines.reached;
  val_losses_ = std::move(lines.val_losses);
  if (lines.num_damaged > 0) {
    fs::path aside = path_.string() + ".damaged";
    write_file_atomic(aside, (fs::exists(aside) ? read_file(aside, kLargeFile) : "") + lines.damaged);
    warning_ = fmt::format("; {} damaged or repeated line{} set aside in {}", lines.num_damaged,
                           lines.num_damaged == 1 ? " is" : "s are", aside.filename().string());
  }
  if (lines.missing > 0)
    warning_ += fmt::format("; no line tells of {} step{}, the first of them step {}", lines.missing,
                            lines.missing == 1 ? "" : "s", lines.first_missing);
  if (!warning_.empty()) warning_ = path_.string() + ": " + warning_.substr(2);
  if (lines.kept != text) write_file_atomic(path_, lines.kept);
  std::string_view last = last_line(lines.kept);
  if (!lacks_val_loss(last, resumed_step)) return;
  resumed_line_ = last;
  last_step_ = resumed_step;
  last_at_ = int64_t(lines.kept.size() - last.size());
}

void MetricsWriter::write(const StepMetrics& metrics) {
  std::string line = format_metrics(metrics) + "\n";
  if (metrics.step != last_step_) last_at_ = size_;
  last_step_ = metrics.step;
  resumed_line_.clear();
  write_line(line);
}

void MetricsWriter::sync() const {
  if (::fdatasync(fd_.get()) != 0 && errno != EINVAL) file_error("sync", path_, errno);
}

void MetricsWriter::add_val_loss(double loss) {
  TOKAMAK_CHECK(can_take_val_loss(), "no line lacks a validation loss");
  ordered_json object = parse_ordered_json(std::exchange(resumed_line_, ""));
  object["val_loss"] = loss;
  write_line(object.dump() + "\n");
}

void MetricsWriter::write_line(const std::string& line) {
  for (size_t done = 0; done < line.size();) {
    ssize_t count = ::pwrite(fd_.get(), line.data() + done, line.size() - done, last_at_ + off_t(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("write", path_, errno);
    done += size_t(count);
  }
  size_ = last_at_ + int64_t(line.size());
}

}  // namespace tokamak
