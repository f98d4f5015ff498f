/* A library of custom operators in plain C: geometry::rotate turns points in the plane, geometry::centre_ moves them so
 * that their mean is the origin. Built as libgeometry.so; given to a model as `op_libraries`. */
#include <math.h>

#include "sconce/custom_op.h"

enum { kFloat32 = 6 };

static int is_points(const SconceTensor* points) {
  return points->dtype == kFloat32 && points->rank == 2 && points->sizes[1] == 2 && points->device_type == 0;
}

/* rotate(Tensor points, float angle) -> Tensor: points [n, 2] of any strides. */
static int rotate(void* context, SconceCall* call, const SconceHost* host) {
  SconceTensor points, turned;
  double angle;
  (void)context;
  if (host->tensor_argument(call, 0, &points) || host->real_argument(call, 1, &angle)) return 1;
  if (!is_points(&points)) return host->fail(call, "points should be float32 [n, 2]");
  if (host->new_result(call, 0, points.rank, points.sizes, points.dtype, &turned)) return 1;
  const float cosine = (float)cos(angle), sine = (float)sin(angle);
  const float* in = points.data;
  float* out = turned.data;
  for (int64_t i = 0; i < points.sizes[0]; ++i) {
    const float x = in[i * points.strides[0]], y = in[i * points.strides[0] + points.strides[1]];
    out[2 * i] = cosine * x - sine * y;
    out[2 * i + 1] = sine * x + cosine * y;
  }
  return 0;
}

/* centre_(Tensor(a!) points) -> Tensor(a!): in place. */
static int centre(void* context, SconceCall* call, const SconceHost* host) {
  SconceTensor points;
  (void)context;
  if (host->tensor_argument(call, 0, &points)) return 1;
  if (!is_points(&points)) return host->fail(call, "points should be float32 [n, 2]");
  float* data = points.data;
  for (int axis = 0; axis < 2; ++axis) {
    double sum = 0;
    for (int64_t i = 0; i < points.sizes[0]; ++i) sum += data[i * points.strides[0] + axis * points.strides[1]];
    const float mean = points.sizes[0] ? (float)(sum / (double)points.sizes[0]) : 0;
    for (int64_t i = 0; i < points.sizes[0]; ++i) data[i * points.strides[0] + axis * points.strides[1]] -= mean;
  }
  return host->result_is_argument(call, 0, 0);
}

int sconce_custom_ops(const SconceHost* host, SconceRegistry* registry) {
  if (host->version < 1) return 1;
  return host->define(registry, "geometry::rotate(Tensor points, float angle=3.141592653589793) -> Tensor", rotate,
                      NULL) ||
         host->define(registry, "geometry::centre_(Tensor(a!) points) -> Tensor(a!)", centre, NULL);
}
