// The product of factor_gram's blocks on tensor cores, in float32: 3xTF32. A float32 is cut into
// big + small, of 11 significant bits each, and small big' + big small' + big big' are products of
// TF32, exact in the tensor core. What is left out, small small', is below 2^-22 of the product.
//
// A tensor core cuts off what its accumulator cannot hold (Fasi, Higham, Mikaitis and Pranesh,
// "Numerical behavior of NVIDIA tensor cores", PeerJ CS 2021): kept there, a sum of positive
// products would shrink with its length. So it adds up eight columns, beginning at zero, and the
// float32 units, which round to nearest, add those to the sum (Ootomo and Yokota, "Recovering
// single precision accuracy from Tensor Cores", IJHPCA 2022).
//
// Where it differs from multiply-adds: an infinite factor, and a sum that overflows, may give NaN
// instead of an infinity; of a factor below 2^-113 only multiples of 2^-136 count, if tensor cores
// keep subnormal numbers, as the former authors found; and with its sides exchanged an entry may
// have other last bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#ifdef KEEL_EMULATED_CUDA
#include "../core/cuda.cuh"  // the emulated GPU's tensor cores
#endif
#include "factor_gram_block.h"

namespace keel {

/// A lane's part of a tile: four elements of a or d.
struct Fragment {
  float v[4];
};

/// d [16, 8] += a [16, 8] b [8, 8] by the 32 lanes of a warp together; a and b as TF32, what they
/// have beyond 11 bits being ignored. Of lane 4 g + t: a (g, t), (g + 8, t), (g, t + 4),
/// (g + 8, t + 4); b (t, g), (t + 4, g); d (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
/// PTX ISA, "Matrix Fragments for mma.m16n8k8".
struct TensorCores {
  KEEL_HD static void multiply_add(Fragment& d, const Fragment& a, float b0, float b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d.v[0]), "+f"(d.v[1]), "+f"(d.v[2]), "+f"(d.v[3])
        : "r"(__float_as_uint(a.v[0])), "r"(__float_as_uint(a.v[1])), "r"(__float_as_uint(a.v[2])),
          "r"(__float_as_uint(a.v[3])), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
#elif defined(__CUDA_ARCH__)
    __trap();  // gram_product leaves these GPUs to multiply-adds
#elif defined(KEEL_EMULATED_CUDA)
    emulated::multiply_add_tf32(d.v, a.v, b0, b1);
#else
    (void)d, (void)a, (void)b0, (void)b1;
    std::abort();  // a GPU's alone
#endif
  }
};

/// Products of tiles of 16 x 8 entries by a warp, which has 64 x 32 entries of the block's tile:
/// the larger they are, the fewer instructions beside the products. Two blocks of 128 threads with
/// all the registers there are do more on a multiprocessor than two of 256 with half of them.
struct TensorProduct {
  using Tile = GramTile<float>;
  static constexpr int kThreads = 128;
  // A chunk is multiplied in less time than memory takes to answer: three are on their way.
  static constexpr int kStages = 4;
  static constexpr int kRows = 8, kCols = 8;  // entries of a thread

  /// Where element (row, column k) of a panel's chunk lies. Sixteen rows of a chunk are a unit: the
  /// sixteen bytes of lane 4 g + t are its rows 4 (g / 2) + g % 2, and that + 2, of columns t and
  /// t + 4. So a warp reads 512 bytes in one piece; they are a tile's a, or two tiles' b; and the
  /// four columns of d that a lane has of two tiles lie side by side.
  KEEL_HD static int at(int row, int k) {
    const int in = row % 16, group = in / 4 * 2 + in % 2, half = in / 2 % 2;
    return row / 16 * kUnit + (group * 4 + k % 4) * 4 + k / 4 * 2 + half;
  }

  /// Row and column of the block's tile that entry (r, c) of a thread is.
  KEEL_HD static int row_of(int id, int r) {
    const int group = id % 32 / 4;
    return id / 32 / kWarpsAcross * kWarpRows + r / 2 * 16 + group / 2 * 4 + r % 2 * 2 + group % 2;
  }
  KEEL_HD static int col_of(int id, int c) {
    return id / 32 % kWarpsAcross * kWarpCols + c / 4 * 16 + id % 4 * 4 + c % 4;
  }

  /// What a panel keeps of an element: the last of the finite numbers would round to infinity, and
  /// their rest be NaN. They are brought down to the last that does not, by 2^-12 at most.
  KEEL_HD static float packed(float x) {
    constexpr float kMost = 0x1.ffdffep127f;
    return std::fabs(x) > kMost && !std::isinf(x) ? std::copysign(kMost, x) : x;
  }

  /// Adds the products of the chunk in `slot` to the thread's sums; whole warps come together.
  KEEL_HD static void multiply(int id, const float* slot, float (&sum)[kRows][kCols]) {
    const int warp = id / 32, lane = id % 32;
    const float* left = slot + warp / kWarpsAcross * kDown * kUnit + lane * 4;
    const float* right = slot + Tile::kRowPanels * Tile::kChunk * Tile::kPanel +
                         warp % kWarpsAcross * kPairs * kUnit + lane * 4;
    Split a[kDown];
    for (int down = 0; down < kDown; ++down) a[down] = split(left + down * kUnit);
    for (int pair = 0; pair < kPairs; ++pair) {
      const Split b = split(right + pair * kUnit);
      Fragment d[kDown][2] = {};
      // Of one of three, no product waits for another.
      for (int down = 0; down < kDown; ++down) multiply_add(d[down], a[down].small, b.big);
      for (int down = 0; down < kDown; ++down) multiply_add(d[down], a[down].big, b.small);
      for (int down = 0; down < kDown; ++down) multiply_add(d[down], a[down].big, b.big);
      for (int r = 0; r < kRows; ++r)
        for (int c = 0; c < 4; ++c) sum[r][pair * 4 + c] += d[r / 2][c / 2].v[r % 2 * 2 + c % 2];
    }
  }

 private:
  static constexpr int kUnit = 16 * Tile::kChunk;
  static constexpr int kDown = kRows / 2, kPairs = kCols / 4;  // units of a warp on either side
  static constexpr int kWarpRows = 16 * kDown, kWarpCols = 16 * kPairs;
  static constexpr int kWarpsAcross = Tile::kTileCols / kWarpCols;
  static_assert(kThreads / 32 == Tile::kTileRows / kWarpRows * kWarpsAcross);
  static_assert(Tile::kPanel % kWarpRows == 0 && Tile::kPanel % kWarpCols == 0);
  static_assert(Tile::kChunk == 8);

  struct Split {
    Fragment big, small;
  };

  // By hand: of cvt.rna.tf32.f32 ptxas makes four instructions, a test for infinity among them.
  KEEL_HD static Split split(const float* from) {
    const auto whole = *reinterpret_cast<const Wide<float>*>(from);
    Split parts;
    for (int i = 0; i < 4; ++i) {
      // To the nearest TF32, ties away from zero. The 13 bits below it tensor cores ignore, which
      // ptxas relies on as well. (A NaN may turn into a zero here: what is left of it is a NaN.)
      const std::uint32_t rounded = bits_of(whole.v[i]) + 0x1000;
      parts.big.v[i] = from_bits(rounded);
      parts.small.v[i] = whole.v[i] - from_bits(rounded & 0xffffe000);
    }
    return parts;
  }

  KEEL_HD static std::uint32_t bits_of(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof(x));
    return bits;
  }
  KEEL_HD static float from_bits(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    return x;
  }

  /// Two tiles side by side.
  KEEL_HD static void multiply_add(Fragment (&d)[2], const Fragment& a, const Fragment& b) {
    TensorCores::multiply_add(d[0], a, b.v[0], b.v[2]);
    TensorCores::multiply_add(d[1], a, b.v[1], b.v[3]);
  }
};

}  // namespace keel
