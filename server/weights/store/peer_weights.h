// Weights from a peer: another ready server of the same model (setting weights_from).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/weights/store/starting_weights.h"

namespace sconce::server::weights {

// Queries all addresses of the setting's host. Publishes the newest set of a ready peer whose weight version is higher
// than `newer_than` and whose constants are the model's, with the peer's version and label. Returns the peer's name;
// nullopt if no peer has such a set, which is logged.
std::optional<std::string> take_peer_weights(const StartingModel& start, uint64_t newer_than);

// A random name of this process. A server uses it to recognise itself among its peers.
const std::string& instance_name();

}  // namespace sconce::server::weights
