// Waits for work of another library on a GPU, through the driver that this library has loaded.
#pragma once

namespace sconce::python {

// Returns when all work of the stream so far is over. null: the legacy default stream. kDevice, kUnavailable. Releases
// the GIL meanwhile.
void wait_for_stream(int device, void* stream);

}  // namespace sconce::python
