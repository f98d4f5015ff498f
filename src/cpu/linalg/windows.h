// Windows of signals, and the frequencies of a Fourier transform's results. Match aten::bartlett_window,
// blackman_window, hamming_window, kaiser_window, fft_fftfreq and fft_rfftfreq (torch 2.15, CPU). Floating dtypes,
// float32 if none is given. A periodic window is the symmetric one with one more element, without its last value.
#pragma once

#include "src/operators/arguments.h"

namespace sconce::cpu {

struct Factory {  // arguments of every operator that makes a tensor
  OptType dtype;
  OptEnum layout;
  OptDevice device;
  OptEnum pin_memory;
};

Tensor bartlett_window(int64_t length, bool periodic, const Factory& factory);
Tensor blackman_window(int64_t length, bool periodic, const Factory& factory);
Tensor hamming_window(int64_t length, bool periodic, double alpha, double beta, const Factory& factory);
Tensor kaiser_window(int64_t length, bool periodic, double beta, const Factory& factory);
// d: the distance of the samples.
Tensor fft_fftfreq(int64_t n, double d, const Factory& factory);
Tensor fft_rfftfreq(int64_t n, double d, const Factory& factory);

}  // namespace sconce::cpu
