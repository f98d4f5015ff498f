#include "src/runner/replicas/model_code.h"

#include "sconce/check.h"
#include "src/device/device_backend.h"

namespace sconce::runner {

void check_device(Device device, const ModelSpec& spec) {
  const bool cuda = spec.device_key == "cuda";
  SCONCE_CHECK(cuda == (device.type == DeviceType::kCuda), kInvalidArgument, "device ", to_string(device),
               ": the model was compiled for ", cuda ? "cuda" : "the CPU");
  if (cuda) device_backend(device).check(device);
}

}  // namespace sconce::runner
