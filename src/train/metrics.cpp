#include "train/metrics.h"

#include "base/error.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

// Whether the line is whole and of a step that the run keeps. Without a step it is no line of ours: not ours to drop.
bool keep_line(std::string_view line, int64_t last_step) {
  ordered_json object = ordered_json::parse(line, nullptr, false);
  if (!object.is_object()) return false;
  return !object.contains("step") || !object["step"].is_number_integer() || object["step"].get<int64_t>() <= last_step;
}

std::string keep_lines(std::string_view text, int64_t last_step) {
  std::string kept;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1)
    if (keep_line(text.substr(begin, end - begin), last_step)) kept += text.substr(begin, end + 1 - begin);
  return kept;  // what follows the last newline is torn
}

}  // namespace

std::string format_metrics(const StepMetrics& m) {
  ordered_json object = {{"step", m.step},
                         {"loss", m.loss},
                         {"grad_norm", m.grad_norm},
                         {"lr", m.lr},
                         {"ms", m.ms},
                         {"tokens_per_second", m.tokens_per_second},
                         {"gflops", m.gflops},
                         {"percent_of_peak", m.percent_of_peak},
                         {"data_wait_ms", m.data_wait_ms},
                         {"wall_seconds", m.wall_seconds}};
  if (m.val_loss) object["val_loss"] = *m.val_loss;
  if (m.loss_scale) object["loss_scale"] = *m.loss_scale;
  if (m.skipped) object["skipped"] = *m.skipped;
  return object.dump();
}

MetricsWriter::MetricsWriter(const fs::path& path, std::optional<int64_t> resumed_step) : path_(path) {
  if (!resumed_step) {
    write_file_atomic(path, "");
  } else if (fs::exists(path)) {
    std::string text = read_file(path), kept = keep_lines(text, *resumed_step);
    if (kept != text) write_file_atomic(path, kept);
  }
  fd_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd_.is_open()) file_error("write", path, errno);
}

void MetricsWriter::write(const StepMetrics& metrics) {
  std::string line = format_metrics(metrics) + "\n";
  for (size_t done = 0; done < line.size();) {
    ssize_t count = ::write(fd_.get(), line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("write", path_, errno);
    done += size_t(count);
  }
}

}  // namespace tokamak
