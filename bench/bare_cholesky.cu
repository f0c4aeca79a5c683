// cuSOLVER's factorisation by itself: nothing is allocated, read back or checked while it is timed.
#include "../kernels/cuda_libraries.cuh"
#include "bench.h"

namespace keel::bench {

std::optional<Timing> cusolver_cholesky([[maybe_unused]] const Tensor& a,
                                        [[maybe_unused]] Fill fill,
                                        [[maybe_unused]] std::size_t repeats) {
#ifdef KEEL_WITH_CUDA
  const Device device = a.device();
  if (device.is_cpu()) return {};
  const std::int64_t n = a.size(0);
  const Tensor factor = a.clone();
  const SolverHandle solver = solver_cusolver(device);
  const cublasFillMode_t half =
      fill == Fill::upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  std::size_t device_bytes = 0, host_bytes = 0;
  cusolver_check(
      cusolverDnXpotrf_bufferSize(solver.handle, solver.params, half, n, CUDA_R_32F,
                                  factor.data<float>(), n, CUDA_R_32F, &device_bytes, &host_bytes),
      "cusolverDnXpotrf_bufferSize");
  const SolverWorkspace work(device, device_bytes, host_bytes);
  const Timing time = measure(
      device,
      [&] {
        cusolver_check(cusolverDnXpotrf(solver.handle, solver.params, half, n, CUDA_R_32F,
                                        factor.data<float>(), n, CUDA_R_32F, work.on_device.data(),
                                        device_bytes, work.on_host.data(), host_bytes,
                                        static_cast<int*>(work.info.data())),
                       "cusolverDnXpotrf");
      },
      0, repeats, [&] { copy(factor, a); });
  const int info = work.read_info(device);
  check(info == 0, "bench", "cusolverDnXpotrf: info is {}, wanted 0", info);
  return time;
#else
  return {};
#endif
}

}  // namespace keel::bench
