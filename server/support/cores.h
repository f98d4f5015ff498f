// Parses sets of cores: "0-3,8", and "numa:0" for the cores of a NUMA node.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

// kInvalidArgument for a malformed part.
void check_cores(std::span<const std::string> parts);
// Cores in the order of the parts, each once. Of a NUMA node, only cores that this process may use: kInvalidArgument if
// there are none, or if the node does not exist. nodes: the kernel's folder of nodes.
std::vector<int> find_cores(std::span<const std::string> parts,
                            const std::filesystem::path& nodes = "/sys/devices/system/node");
// text: parts separated by commas.
std::vector<int> find_cores(std::string_view text);

}  // namespace sconce::server
