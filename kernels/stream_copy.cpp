#include "stream_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace keel {

#ifdef __SSE2__

namespace {

constexpr std::size_t kLine = 64;

void stream_line(char* to, const char* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#else
  for (std::size_t i = 0; i < kLine; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
#endif
}

}  // namespace

void stream_copy(void* to, const void* from, std::size_t bytes) {
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  const std::size_t behind_line = reinterpret_cast<std::uintptr_t>(target) % kLine;
  const std::size_t head = std::min(bytes, behind_line == 0 ? 0 : kLine - behind_line);
  std::memcpy(target, source, head);
  std::size_t at = head;
  for (; at + kLine <= bytes; at += kLine) stream_line(target + at, source + at);
  std::memcpy(target + at, source + at, bytes - at);
}

void stream_fence() { _mm_sfence(); }

#else

void stream_copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void stream_fence() {}

#endif

}  // namespace keel
