// Clusters by name or file. src/config/clusters/*.toml are part of the program, and an example for files of one's own.
// Tests: tests/config/cluster_test.cpp.
#pragma once

#include "config/cluster_config.h"
#include "config/field.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

void visit(FieldList& v, ClusterConfig& c);

/// Those that the program carries, sorted.
std::vector<std::string> cluster_names();

/// A name of these, or else a TOML file. Every figure has a source, and what a plan needs is known; else UserError.
ClusterConfig read_cluster(const std::string& name_or_file);

/// The same of a text; `name` is for messages.
ClusterConfig parse_cluster(std::string_view text, std::string_view name);

/// What a device costs an hour, by the first of cluster_names() that has GPUs of its kind and a price.
struct DevicePrice {
  double dollars = 0;   // a device and hour
  std::string cluster;  // whose price it is
};
std::optional<DevicePrice> find_price(std::string_view device);

/// Throws UserError unless the cluster has so many GPUs in whole nodes, or in a part of one.
void require_gpus(const ClusterConfig& cluster, int64_t gpus);

}  // namespace tokamak
