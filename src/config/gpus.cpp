#include "config/gpus.h"

#include "base/embedded_file.h"
#include "base/error.h"
#include "config/assignment.h"
#include "config/suggest.h"
#include "config/toml.h"

#include <algorithm>
#include <filesystem>
#include <span>

namespace tokamak {

std::span<const EmbeddedFile> embedded_gpus();

namespace {

std::string model_of(const EmbeddedFile& file) { return std::filesystem::path(file.name).stem(); }

GpuConfig read_gpu(const EmbeddedFile& file) {
  GpuConfig gpu;
  FieldList list;
  list.config(gpu);
  std::vector<Field> fields = std::move(list).take();
  assign(fields, parse_toml(fields, file.text, file.name));
  check_sources(fields, file.name);
  gpu.model = model_of(file);
  return gpu;
}

}  // namespace

void visit(FieldList& v, Figure& c) {
  v("value", c.value, "the number, in bytes, seconds, FLOP/s, watts and so on", at_least(0));
  v("source", c.source, "where it comes from");
}

void visit(FieldList& v, GpuConfig& c) {
  v.preset("model", c.model, "a kind that is known; figures given beside it replace its own", gpu_models(),
           [&c] { c = gpu_model(std::string(c.model)); });
  v("name", c.name, "piece of the device's name by which it is known");
  v.section("half_flops", c.half_flops, "FLOP/s of bf16 and fp16 products, added in fp32, without sparsity");
  v.section("tf32_flops", c.tf32_flops, "FLOP/s of tf32 products, without sparsity");
  v.section("fp32_flops", c.fp32_flops, "FLOP/s without tensor cores");
  v.section("memory_bytes", c.memory_bytes, "bytes that a program can have");
  v.section("memory_bandwidth", c.memory_bandwidth, "bytes/s");
  v.section("power", c.power, "watts, at most");
  v.section("multiprocessors", c.multiprocessors, "multiprocessors");
  v.section("compute_capability", c.compute_capability, "compute capability");
  v.section("l2_bytes", c.l2_bytes, "bytes of the last cache");
  v.section("shared_bytes", c.shared_bytes, "bytes of shared memory that a block can have");
  v.section("load_clock", c.load_clock,
            "share of the clock that a long run leaves it: 0.9 where none is said; of a run that was measured, 0.9 x "
            "predicted / measured seconds of a step");
}

std::vector<std::string> gpu_models() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_gpus()) names.push_back(model_of(file));
  return names;
}

GpuConfig gpu_model(std::string_view model) {
  for (const EmbeddedFile& file : embedded_gpus())
    if (model_of(file) == model) return read_gpu(file);
  user_error("[gpu.model] expected a known GPU, got '{}'{}", model, did_you_mean(model, gpu_models()));
}

std::optional<GpuConfig> find_gpu(std::string_view device) {
  constexpr std::string_view kOtherVariants[] = {"MIG", "Laptop", "4090 D", "GB200"};
  auto contains = [&](std::string_view piece) { return device.find(piece) != std::string_view::npos; };
  if (std::any_of(std::begin(kOtherVariants), std::end(kOtherVariants), contains)) return {};
  std::optional<GpuConfig> best;
  for (const EmbeddedFile& file : embedded_gpus()) {
    GpuConfig gpu = read_gpu(file);
    if (contains(gpu.name) && (!best || gpu.name.size() > best->name.size())) best = std::move(gpu);
  }
  return best;
}

void check_sources(const std::vector<Field>& fields, std::string_view name) {
  constexpr std::string_view kValue = ".value";
  for (const Field& field : fields) {
    if (!field.key.ends_with(kValue)) continue;
    std::string key = field.key.substr(0, field.key.size() - kValue.size());
    bool has_value = std::get<double>(get(field)) > 0;
    bool has_source = !std::get<std::string>(get(*find_field(fields, key + ".source"))).empty();
    if (has_value && !has_source)
      user_error("[{}: {}] expected where the figure comes from, got none; write {} = {{value = {}, source = \"...\"}}",
                 name, key, key.substr(key.rfind('.') + 1), format_value(get(field)));
  }
}

}  // namespace tokamak
