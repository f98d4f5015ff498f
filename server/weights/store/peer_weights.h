// Weights of a peer: another server of the same model that is ready (setting weights_from).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/weights/store/starting_weights.h"

namespace sconce::server {

// Asks all addresses of the setting's host, and publishes the newest set of a ready one whose generation is higher than
// `newer_than` and whose constants are the model's, under its generation and label. Returns the peer's name; nullopt if
// there is none, which is logged.
std::optional<std::string> take_peer_weights(const StartingModel& start, uint64_t newer_than);

// A random name of this process, by which a server knows itself among its peers.
const std::string& instance_name();

}  // namespace sconce::server
