// Elements as words that compare in ATen's order: NaN greatest, zeros equal; inverted for descending.
#pragma once

#include <cstdint>

namespace sconce::cuda {

// How elements of a dtype (c10::ScalarType) map to integers that compare in the order wanted.
struct KeyForm {
  int bits;                 // per element
  uint64_t sign, infinity;  // bit patterns; 0 if unsigned, 0 for integers
  bool boolean, descending;
};
inline KeyForm key_form(int dtype, bool descending) {
  constexpr uint64_t kOne = 1;
  switch (dtype) {
    case 0:
      return {8, 0, 0, false, descending};
    case 1:
      return {8, kOne << 7, 0, false, descending};
    case 2:
      return {16, kOne << 15, 0, false, descending};
    case 3:
      return {32, kOne << 31, 0, false, descending};
    case 4:
      return {64, kOne << 63, 0, false, descending};
    case 5:
      return {16, kOne << 15, 0x7C00, false, descending};
    case 6:
      return {32, kOne << 31, 0x7F800000, false, descending};
    case 7:
      return {64, kOne << 63, 0x7FF0000000000000, false, descending};
    case 11:
      return {8, 0, 0, true, descending};
    case 15:
      return {16, kOne << 15, 0x7F80, false, descending};
    case 27:
      return {16, 0, 0, false, descending};
    case 28:
      return {32, 0, 0, false, descending};
    case 29:
      return {64, 0, 0, false, descending};
    default:
      return {0, 0, 0, false, descending};
  }
}

// Packed elements with the size of Word; a Word of two bytes may hold elements of one.
template <class Word>
struct Keys {
  const void* elements;
  Word sign, infinity, mask, flip;
  bool bytes, boolean;

  Keys(const void* from, const KeyForm& form)
      : elements(from),
        sign(static_cast<Word>(form.sign)),
        infinity(static_cast<Word>(form.infinity)),
        mask(static_cast<Word>(~uint64_t{0} >> (64 - form.bits))),
        flip(form.descending ? mask : Word{0}),
        bytes(form.bits == 8),
        boolean(form.boolean) {}

  __device__ Word element(int64_t i) const {
    if constexpr (sizeof(Word) == 2)
      if (bytes) return static_cast<const uint8_t*>(elements)[i];
    return static_cast<const Word*>(elements)[i];
  }
  __device__ Word key(Word element) const {
    Word key = element ^ sign;
    if (infinity) {
      const Word size = element & static_cast<Word>(~sign);
      if (size > infinity)
        key = mask;
      else if (size == 0)
        key = sign;
      else if (element & sign)
        key = static_cast<Word>(~element);
    } else if (boolean) {
      key = element != 0;
    }
    return key ^ flip;
  }
  // Recovers the element from its key, unless several elements share it (zeros and NaNs).
  __device__ bool restore(Word key, Word& element) const {
    key ^= flip;
    if (!infinity) {
      element = key ^ sign;
      return true;
    }
    if (key == mask || key == sign) return false;
    element = key & sign ? key ^ sign : static_cast<Word>(~key);
    return true;
  }
  __device__ void store(void* to, int64_t i, Word element) const {
    if constexpr (sizeof(Word) == 2)
      if (bytes) {
        static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(element);
        return;
      }
    static_cast<Word*>(to)[i] = element;
  }
};

// Calls function(Keys<Word>) with the word for these elements; false if the dtype has no order.
template <class F>
bool with_keys(const void* elements, const KeyForm& form, F function) {
  switch (form.bits) {
    case 8:
    case 16:
      function(Keys<uint16_t>(elements, form));
      return true;
    case 32:
      function(Keys<uint32_t>(elements, form));
      return true;
    case 64:
      function(Keys<uint64_t>(elements, form));
      return true;
    default:
      return false;
  }
}

}  // namespace sconce::cuda
