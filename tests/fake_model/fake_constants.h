// The constants of the fake model. Compiled with
//   FAKE_FEATURES=n   length of w and b (4)
//   FAKE_STATE        adds the buffer `steps` [1], which each run reads and increments
//   FAKE_FOLDED       adds `_FOLDED_CONST_w2` = 2 w, which runs use in the place of w. With FAKE_STATE, folding sets
//                     `steps` to kFoldedSteps, and runs only read it
//   FAKE_UNTYPED      of no constant it says what it is
//   FAKE_APPENDED     weights follow the .so's own bytes
//   FAKE_EXTERNAL     weights come in one blob by AOTInductorModelUpdateConstantsFromBlob
//   FAKE_WEIGHTLESS   weights are the caller's to give
//   FAKE_CUDA         the inputs and the output are on a CUDA device, the constants on the host
//   FAKE_LOOP         it is the model of fake_loop.h, whose constants nothing depends on
//   FAKE_SUMMARY      y = x + [min w, max w, min b, max b], x [B, 4]: every weight is looked at, and weights of two
//   sets
//                     show, where those of each set are all the same
// Stored values: w[i] = 1 + i % 16, b[i] = 10 * (i % 16), steps = 0. Each is padded to 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef FAKE_FEATURES
#define FAKE_FEATURES 4
#endif

namespace fake {

enum ConstantType : int32_t { kUnknown = 0, kParameter = 1, kBuffer = 2, kTensorConstant = 3, kFolded = 4 };

struct ConstantInfo {
  const char* name;
  const char* fqn;
  int64_t size;  // elements; all are float32 of one dimension
  int32_t type;
  bool folded;
  size_t data_size() const { return (static_cast<size_t>(size) * sizeof(float) + 63) / 64 * 64; }
};

inline constexpr int64_t kFeatures = FAKE_FEATURES;  // of w and b
#ifdef FAKE_SUMMARY
inline constexpr bool kSummary = true;
inline constexpr int64_t kColumns = 4;  // of x and y
#else
inline constexpr bool kSummary = false;
inline constexpr int64_t kColumns = kFeatures;
#endif
#ifdef FAKE_UNTYPED
inline constexpr bool kTyped = false;
#else
inline constexpr bool kTyped = true;
#endif
inline constexpr ConstantInfo kConstants[] = {
    {"scale_w", "scale.w", kFeatures, kTyped ? kParameter : kUnknown, false},
    {"scale_b", "scale.b", kFeatures, kTyped ? kParameter : kUnknown, false},
#ifdef FAKE_STATE
    {"steps", "steps", 1, kTyped ? kBuffer : kUnknown, false},
#endif
#ifdef FAKE_FOLDED
    {"_FOLDED_CONST_w2", "_FOLDED_CONST_w2", kFeatures, kFolded, true},
#endif
};
inline constexpr size_t kConstantCount = sizeof(kConstants) / sizeof(kConstants[0]);
inline constexpr size_t kW = 0, kB = 1;
inline constexpr float kFoldedSteps = 100;
#ifdef FAKE_STATE
inline constexpr size_t kSteps = 2;
inline constexpr bool kHasState = true;
#else
inline constexpr size_t kSteps = 0;
inline constexpr bool kHasState = false;
#endif
#ifdef FAKE_FOLDED
inline constexpr size_t kW2 = kConstantCount - 1;
inline constexpr bool kHasFolded = true;
#else
inline constexpr size_t kW2 = 0;
inline constexpr bool kHasFolded = false;
#endif
#ifdef FAKE_CUDA
inline constexpr bool kCuda = true;
#else
inline constexpr bool kCuda = false;
#endif
#ifdef FAKE_LOOP
inline constexpr bool kLoop = true;
#else
inline constexpr bool kLoop = false;
#endif
inline constexpr size_t kInputs = kLoop ? 2 : 1, kOutputs = kInputs;
#ifdef FAKE_WEIGHTLESS
inline constexpr bool kIncludeWeights = false;
#elif defined(FAKE_EXTERNAL)
inline constexpr bool kIncludeWeights = false;
#else
inline constexpr bool kIncludeWeights = true;
#endif

// The stored weights, wherever they are. Each container finds them for itself, as models do.
class StoredConstants {
 public:
  StoredConstants() = default;
  StoredConstants(const StoredConstants&) = delete;
  StoredConstants& operator=(const StoredConstants&) = delete;
  ~StoredConstants();
  // Throws std::runtime_error where there are none.
  const unsigned char* get();

 private:
  const unsigned char* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
};
void set_external_constants(const unsigned char* blob);

}  // namespace fake
