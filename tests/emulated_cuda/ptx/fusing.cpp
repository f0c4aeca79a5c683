#include "code.h"

namespace keel::emulated::ptx {

void fuse_products(Kernel& kernel) {
  // Who writes a register, if only one instruction does.
  constexpr int kNobody = -1, kSeveral = -2;
  std::vector<int> writer(static_cast<std::size_t>(kernel.registers), kNobody);
  for (std::size_t i = 0; i < kernel.code.size(); ++i)
    for (int k = 0; k < kernel.code[i].results; ++k) {
      int& by = writer[static_cast<std::size_t>(kernel.code[i].at[k])];
      by = by == kNobody ? static_cast<int>(i) : kSeveral;
    }
  const auto writer_of = [&](int at) { return writer[static_cast<std::size_t>(at)]; };

  for (Instruction& in : kernel.code) {
    if (!in.operation || !in.operation->with_product[0]) continue;
    for (int k = 0; k < 2; ++k) {
      const int by = writer_of(in.at[k + 1]);
      if (by < 0) continue;
      const Instruction& product = kernel.code[static_cast<std::size_t>(by)];
      const bool plain = product.operation && product.operation->product && product.guard < 0 &&
                         writer_of(product.at[1]) != kSeveral &&
                         writer_of(product.at[2]) != kSeveral;
      if (!plain) continue;
      in.action = in.operation->with_product[k];
      in.at[3] = in.at[2 - k];
      in.at[1] = product.at[1];
      in.at[2] = product.at[2];
      break;
    }
  }
}

}  // namespace keel::emulated::ptx
