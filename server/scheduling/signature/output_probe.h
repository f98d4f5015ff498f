// Runs the model, in a child process, to learn about outputs that its package does not describe.
#pragma once

#include "sconce/model.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server::scheduling {

// Whether runs on zeros may describe the outputs. False for a model on a device, and for a model that writes its
// buffers.
bool probes_outputs(const ModelSignature& interface, DeviceType device) noexcept;

// The outputs of two runs on zeros of different sizes. Errors of dummy_inputs() and of Model::run: some models do not
// run on zeros.
OutputProbe probe_outputs(Model& model, const ModelSignature& interface);

}  // namespace sconce::server::scheduling
