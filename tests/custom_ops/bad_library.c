/* Invalid definitions: a broken schema and a name of ATen's, beside a valid one. */
#include "sconce/custom_op.h"

static int nothing(void* context, SconceCall* call, const SconceHost* host) {
  (void)context, (void)call, (void)host;
  return 0;
}

int sconce_custom_ops(const SconceHost* host, SconceRegistry* registry) {
  host->define(registry, "bad::broken(Tensor) -> Tensor", nothing, 0);
  host->define(registry, "aten::mm(Tensor self, Tensor mat2) -> Tensor", nothing, 0);
  host->define(registry, "bad::fine(Tensor x) -> ()", nothing, 0);
  return 0;
}
