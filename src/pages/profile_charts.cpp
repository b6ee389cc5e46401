#include "pages/profile_charts.h"

#include "pages/html.h"
#include "plan/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// A logarithmic axis from one power of ten to another, over so many units of a drawing.
struct LogAxis {
  int low, high;
  double length;

  double at(double value) const { return length * (std::log10(value) - low) / (high - low); }
};

LogAxis axis_around(double least, double most, double length) {
  return {int(std::floor(std::log10(least))), int(std::ceil(std::log10(most * 1.0001))), length};
}

constexpr double kLeft = 100, kRight = 24, kBottom = 44;

// One for each width of screen, as letters have the same size on both.
struct Sheet {
  std::string_view style;
  double width, height;
  double largest;     // radius of what takes all of the time
  double beside_end;  // as a share of the width, where a name ends that stands beside another
};
constexpr Sheet kSheets[] = {{"broad", 900, 420, 28, 0.76}, {"narrow", 360, 320, 16, 0.6}};

struct Roofs {
  LogAxis x, y;
  const Sheet& sheet;

  double left(double intensity) const { return kLeft + x.at(intensity); }
  double top(double rate) const { return bottom() - y.at(rate); }
  double bottom() const { return sheet.height - kBottom; }
};

// "10 GFLOP/s" of the tenth power of ten.
std::string rate_tick(int power) {
  constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int thousands = std::clamp(power / 3, 0, int(std::size(kPrefixes)) - 1);
  return fmt::format("{:g} {}FLOP/s", std::pow(10, power - 3 * thousands), kPrefixes[size_t(thousands)]);
}

std::string draw_grid(const Roofs& roofs) {
  constexpr double kTick = 36;  // wide
  std::string text;
  int step = roofs.x.length / (roofs.x.high - roofs.x.low) < kTick ? 2 : 1;
  for (int p = roofs.x.low; p <= roofs.x.high; p += step) {
    double at = roofs.left(std::pow(10, p));
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"0\" x2=\"{0:.1f}\" y2=\"{1:.1f}\"/>"
        "<text x=\"{0:.1f}\" y=\"{2:.1f}\" text-anchor=\"middle\">{3:g}</text>\n",
        at, roofs.bottom(), roofs.bottom() + 18, std::pow(10, p));
  }
  for (int p = roofs.y.low; p <= roofs.y.high; ++p) {
    double at = roofs.top(std::pow(10, p));
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\"/>"
        "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        kLeft, at, roofs.sheet.width, kLeft - 6, at + 4, rate_tick(p));
  }
  return text + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">FLOP/byte</text>\n",
                            (kLeft + roofs.sheet.width) / 2, roofs.sheet.height - 6);
}

struct Roof {
  std::string_view name;
  double rate;
  bool is_beside = false;  // its name, another's
};

// The memory's slope, cut where it meets a flat roof.
std::string draw_roof(const Roofs& roofs, double bandwidth, const Roof& roof) {
  double low = std::pow(10, roofs.x.low), high = std::pow(10, roofs.x.high);
  double corner = std::clamp(roof.rate / bandwidth, low, high);
  double bottom = std::max(low, std::pow(10, roofs.y.low) / bandwidth);
  return fmt::format("<polyline class=\"roof\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>\n",
                     roofs.left(bottom), roofs.top(bottom * bandwidth), roofs.left(corner),
                     roofs.top(std::min(roof.rate, corner * bandwidth)), roofs.left(high), roofs.top(roof.rate));
}

std::string draw_name(const Roofs& roofs, const Roof& roof) {
  double end = roof.is_beside ? roofs.sheet.beside_end : 0.96;
  return fmt::format("<text class=\"over\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{} {}</text>\n",
                     roofs.sheet.width * end, roofs.top(roof.rate) - 5, roof.name, format_count(roof.rate, "FLOP/s"));
}

std::string draw_kernel(const Roofs& roofs, const KernelProfile& k, double all_seconds) {
  double rate = k.flops / k.seconds, radius = 3 + roofs.sheet.largest * std::sqrt(k.seconds / all_seconds);
  return fmt::format(
      "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"><title>{}</title></circle>\n", to_string(k.work),
      roofs.left(k.flops / k.bytes), roofs.top(rate), radius,
      escape_html(fmt::format("{} {}: {:.3f} ms, {}, {:.3g} FLOP/byte, {:.0f}% of its roof{}", k.label, k.shape,
                              1e3 * k.seconds, format_count(rate, "FLOP/s"), k.flops / k.bytes, 100 * k.of_roof(),
                              k.tensor_cores.empty() ? "" : "; tensor cores: " + k.tensor_cores)));
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

std::string roofline_chart(const std::vector<KernelProfile>& kernels, const Target& target) {
  std::vector<const KernelProfile*> drawn;
  double seconds = 0, least = 0.1, most = 100, slowest = target.pointwise_flops;
  for (const KernelProfile& k : kernels)
    if (k.flops > 0 && k.bytes > 0 && k.seconds > 0 && k.work != WorkClass::kCommunication) {
      drawn.push_back(&k);
      seconds += k.seconds;
      least = std::min(least, k.flops / k.bytes), most = std::max(most, k.flops / k.bytes);
      slowest = std::min(slowest, k.flops / k.seconds);
    }
  double fastest = std::max({target.f32_flops, target.bf16_flops, target.tf32_flops});
  for (const KernelProfile* k : drawn) fastest = std::max(fastest, k->flops / k->seconds);
  const Roof roofs[] = {
      {"bf16", target.bf16_flops}, {"fp32", target.f32_flops, true}, {"pointwise", target.pointwise_flops}};
  std::string text;
  for (const Sheet& sheet : kSheets) {
    Roofs on{axis_around(least, most, sheet.width - kLeft - kRight),
             axis_around(slowest, fastest, sheet.height - kBottom), sheet};
    text +=
        fmt::format("<svg class=\"{}\" viewBox=\"0 -16 {} {}\" role=\"img\" aria-label=\"kernels below the roofs\">\n",
                    sheet.style, sheet.width, sheet.height + 16);
    text += draw_grid(on);
    for (const Roof& roof : roofs) text += draw_roof(on, target.memory_bandwidth, roof);
    for (const KernelProfile* k : drawn) text += draw_kernel(on, *k, seconds);
    for (const Roof& roof : roofs) text += draw_name(on, roof);  // over the kernels
    text += "</svg>\n";
  }
  return text;
}

std::string memory_chart(const MemoryPicture& picture) {
  constexpr double kW = 1000, kH = 320;
  if (picture.seconds <= 0 || picture.arena_bytes <= 0) return "";
  auto x = [&](double at) { return kW * at / picture.seconds; };
  auto y = [&](int64_t at) { return kH * double(at) / double(picture.arena_bytes); };
  std::string text = fmt::format(
      "<svg class=\"memory\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"the arena over time\">\n<rect class=\"lane\" width=\"{}\" height=\"{}\"/>\n",
      kW, kH, kW, kH);
  for (const MemoryBlock& block : picture.blocks)
    text += fmt::format(
        "<rect class=\"block{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\">"
        "<title>{}</title></rect>\n",
        block.at_peak ? " peak" : "", x(block.begin), kH - y(block.offset + block.bytes),
        std::max(x(block.end) - x(block.begin), 0.5), std::max(y(block.bytes), 0.3),
        escape_html(fmt::format("{}: {:.3f} to {:.3f} ms", block.label, 1e3 * block.begin, 1e3 * block.end)));
  return text + fmt::format("<line class=\"now\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"0\" y2=\"{1}\"/>\n</svg>\n",
                            x(picture.peak_seconds), kH);
}

std::string prediction_chart(const std::vector<KernelProfile>& kernels, size_t most) {
  double longest = 0;
  for (const KernelProfile& k : kernels) longest = std::max({longest, k.seconds, k.predicted});
  std::string text;
  for (size_t i = 0; i < std::min(most, kernels.size()); ++i) {
    const KernelProfile& k = kernels[i];
    text += fmt::format(
        "<div class=\"kernel\"><span class=\"name\">{} <small>{}, {}x</small></span><span "
        "class=\"bars\">{}{}</span><span class=\"value\">{:.3f} ms <small>{:.3f}</small></span></div>\n",
        escape_html(k.label), escape_html(k.shape), k.count,
        bar(to_string(k.work), k.seconds / longest, fmt::format("{:.3f} ms", 1e3 * k.seconds)),
        bar("predicted", k.predicted / longest, fmt::format("predicted: {:.3f} ms", 1e3 * k.predicted)),
        1e3 * k.seconds, 1e3 * k.predicted);
  }
  return text;
}

}  // namespace tokamak
