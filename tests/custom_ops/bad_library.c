/* Definitions that cannot be: a broken schema, a name that is ATen's, beside one that is fine. */
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
