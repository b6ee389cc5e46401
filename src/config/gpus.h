// The kinds of GPUs that the program knows: src/config/gpus/*.toml, which it carries with it.
// Tests: tests/config/gpus_test.cpp.
#pragma once

#include "config/field.h"
#include "config/gpu_config.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

void visit(FieldList& v, Figure& c);
void visit(FieldList& v, GpuConfig& c);

/// Names for GpuConfig::model, sorted.
std::vector<std::string> gpu_models();

/// Stands for a GPU where none is named.
inline constexpr const char* kNominalGpu = "h200";

/// The description of that name; UserError with the nearest known one where there is none.
GpuConfig gpu_model(std::string_view model);

/// The kind whose name is the longest piece of the device's; none for an unknown device, and for parts of a GPU and
/// variants of the same name with fewer or slower units.
std::optional<GpuConfig> find_gpu(std::string_view device);

/// UserError "[name: key] ..." for a figure without a source among the fields.
void check_sources(const std::vector<Field>& fields, std::string_view name);

}  // namespace tokamak
