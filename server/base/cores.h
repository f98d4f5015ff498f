// Sets of cores as they are written: "0-3,8", and "numa:0" for those of a NUMA node.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

// kInvalidArgument for a part that is neither.
void check_cores(std::span<const std::string> parts);
// In the order of the parts, each core once. Of a node's cores those that this process may use: kInvalidArgument if
// there are none, or no such node. nodes: the kernel's folder of nodes.
std::vector<int> find_cores(std::span<const std::string> parts,
                            const std::filesystem::path& nodes = "/sys/devices/system/node");
// The same for parts with commas between them.
std::vector<int> find_cores(std::string_view text);

}  // namespace sconce::server
