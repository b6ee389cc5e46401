#include "pages/profile_charts.h"

#include "base/bytes.h"
#include "pages/html.h"
#include "pages/ticks.h"
#include "plan/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// A flat roof and the memory's slope below it, from `low` to `high` FLOP/byte.
NamedLine roof_line(std::string_view name, double rate, double bandwidth, double low, double high) {
  double corner = std::clamp(rate / bandwidth, low, high);
  return {fmt::format("{} {}", name, format_count(rate, "FLOP/s")),
          {{low, std::min(rate, low * bandwidth)}, {corner, std::min(rate, corner * bandwidth)}, {high, rate}}};
}

ChartPoint point_of(const KernelProfile& k, double all_seconds) {
  double rate = k.flops / k.seconds;
  return {k.flops / k.bytes, rate, k.seconds / all_seconds,
          fmt::format("{} {}: {:.3f} ms, {}, {:.3g} FLOP/byte, {:.0f}% of its roof{}", k.label, k.shape,
                      1e3 * k.seconds, format_count(rate, "FLOP/s"), k.flops / k.bytes, 100 * k.of_roof(),
                      k.tensor_cores.empty() ? "" : "; tensor cores: " + k.tensor_cores)};
}

std::string bar(std::string_view kind, double share, const std::string& title) {
  return fmt::format("<i class=\"{}\" style=\"width:{:.2f}%\" title=\"{}\"></i>", kind, 100 * share,
                     escape_html(title));
}

}  // namespace

std::string style_class(std::string name) {
  if (size_t comma = name.find(','); comma != std::string::npos) name.resize(comma);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string breakdown_bar(const TimeBreakdown& breakdown) {
  std::string text = "<div class=\"breakdown\">";
  for (const BreakdownRow& row : rows_of(breakdown))
    if (double share = row.seconds / breakdown.total; share > 0.0005)
      text += bar(style_class(row.name), share, fmt::format("{}: {:.1f}%", row.name, 100 * share));
  return text + "</div>\n";
}

PointChart roofline_chart(const std::vector<KernelProfile>& kernels, const Target& target) {
  PointChart chart{.title = "kernels below the roofs", .x_unit = "FLOP/byte", .y_unit = "FLOP/s"};
  double seconds = 0, least = 0.1, most = 100;
  auto is_drawn = [](const KernelProfile& k) {
    return k.flops > 0 && k.bytes > 0 && k.seconds > 0 && k.work != WorkClass::kCommunication;
  };
  for (const KernelProfile& k : kernels)
    if (is_drawn(k)) {
      seconds += k.seconds;
      least = std::min(least, k.flops / k.bytes), most = std::max(most, k.flops / k.bytes);
    }
  least = std::pow(10, std::floor(std::log10(least))), most = std::pow(10, std::ceil(std::log10(most)));
  for (WorkClass work : kWorkClasses) {
    PointSet set{std::string(to_string(work)), "--" + style_class(std::string(to_string(work))), {}};
    for (const KernelProfile& k : kernels)
      if (k.work == work && is_drawn(k)) set.points.push_back(point_of(k, seconds));
    if (!set.points.empty()) chart.sets.push_back(std::move(set));
  }
  chart.lines = {roof_line("bf16", target.bf16_flops, target.memory_bandwidth, least, most),
                 roof_line("fp32", target.f32_flops, target.memory_bandwidth, least, most),
                 roof_line("pointwise", target.pointwise_flops, target.memory_bandwidth, least, most)};
  return chart;
}

std::string memory_chart(const MemoryPicture& picture) {
  constexpr double kW = 1000, kH = 320;
  if (picture.seconds <= 0 || picture.arena_bytes <= 0) return "";
  auto x = [&](double at) { return kW * at / picture.seconds; };
  auto y = [&](int64_t at) { return kH * double(at) / double(picture.arena_bytes); };
  double mib = double(picture.arena_bytes) / kMiB;
  std::string text = "<div class=\"memory\"><div class=\"levels\">", grid;
  for (double tick : round_ticks(0, mib, 6)) {
    text += fmt::format("<span style=\"bottom:{:.2f}%\">{:.6g}</span>", 100 * tick / mib, tick);
    grid += fmt::format("<line class=\"grid\" x1=\"0\" x2=\"{0}\" y1=\"{1:.2f}\" y2=\"{1:.2f}\"/>\n", kW,
                        kH * (1 - tick / mib));
  }
  text += fmt::format(
      "</div><svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"the arena over time\">\n<rect class=\"lane\" width=\"{}\" height=\"{}\"/>\n{}",
      kW, kH, kW, kH, grid);
  for (const MemoryBlock& block : picture.blocks)
    text += fmt::format(
        "<rect class=\"block{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\">"
        "<title>{}</title></rect>\n",
        block.at_peak ? " peak" : "", x(block.begin), kH - y(block.offset + block.bytes),
        std::max(x(block.end) - x(block.begin), 0.5), std::max(y(block.bytes), 0.3),
        escape_html(fmt::format("{}: {:.3f} to {:.3f} ms", block.label, 1e3 * block.begin, 1e3 * block.end)));
  return text + fmt::format(
                    "<line class=\"now\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"0\" y2=\"{1}\"/>\n</svg><div>MiB</div>{2}"
                    "</div>\n",
                    x(picture.peak_seconds), kH, tick_line(0, 1e3 * picture.seconds, "ms"));
}

BarChart prediction_chart(const std::vector<KernelProfile>& kernels, size_t most) {
  BarChart chart{.title = "kernels, measured and predicted", .unit = "ms a step"};
  chart.sets = {{"measured", "--matmul", {}}, {"predicted", "--predicted", {}}};
  for (size_t i = 0; i < std::min(most, kernels.size()); ++i) {
    const KernelProfile& k = kernels[i];
    chart.rows.push_back(fmt::format("{}, {}, {}x", k.label, k.shape, k.count));
    chart.values.push_back(fmt::format("{:.3f} ms ({:.3f})", 1e3 * k.seconds, 1e3 * k.predicted));
    chart.sets[0].values.push_back(1e3 * k.seconds);
    chart.sets[1].values.push_back(1e3 * k.predicted);
  }
  return chart;
}

}  // namespace tokamak
