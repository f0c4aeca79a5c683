#include "tensor.h"

#include <thrust/copy.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/functional.h>
#include <thrust/transform.h>

#include <cstring>
#include <stdexcept>

#include "cuda.cuh"

namespace keel {
namespace {

// Calls f(policy): Thrust on the tensor's own device, on this thread's stream.
template <class F>
void with_policy(Device device, F&& f) {
#ifdef KEEL_WITH_CUDA
  if (device.is_cuda()) {
    cuda_check(cudaSetDevice(device.index()), "cudaSetDevice");
    try {
      f(thrust::cuda::par_nosync.on(stream_of(device)));
    } catch (const std::runtime_error& error) {  // of Thrust's own
      cudaGetLastError();
      fail<DeviceError>("cuda", "{}", error.what());
    }
    return;
  }
#endif
  (void)device;
  f(thrust::host);
}

void copy_bytes(const Tensor& into, const Tensor& x) {
  const std::size_t bytes = x.bytes();
  if (bytes == 0) return;
  void* target = dispatch(into.dtype(), [&](auto t) -> void* { return into.data<decltype(t)>(); });
  const void* source =
      dispatch(x.dtype(), [&](auto t) -> const void* { return x.data<decltype(t)>(); });
  if (into.device().is_cpu() && x.device().is_cpu()) {
    std::memmove(target, source, bytes);
    return;
  }
#ifdef KEEL_WITH_CUDA
  const Device gpu = into.device().is_cuda() ? into.device() : x.device();
  cuda_check(cudaSetDevice(gpu.index()), "cudaSetDevice");
  const bool within = into.device() == x.device();
  if (into.device().is_cuda() && x.device().is_cuda() && !within) {
    // What another GPU still writes must be there before this one's stream reads it.
    synchronize(x.device());
    cuda_check(cudaMemcpyPeerAsync(target, into.device().index(), source, x.device().index(), bytes,
                                   stream_of(gpu)),
               "copy");
  } else {
    cuda_check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream_of(gpu)), "copy");
  }
  // The source may be reused as soon as we return, by the host or by its own GPU's stream.
  if (!within) synchronize(gpu);
#endif
}

}  // namespace

Tensor Tensor::empty(Shape shape, DType dtype, Device device) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(shape.elements()), size_of(dtype), &bytes))
    fail<ShapeError>("tensor", "{} of {} has more bytes than 64 bits can count", shape,
                     name_of(dtype));
  Tensor tensor;
  tensor.storage_ = Storage(device, bytes);
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  return tensor;
}

Tensor Tensor::full(Shape shape, double value, DType dtype, Device device) {
  Tensor tensor = empty(shape, dtype, device);
  fill(tensor, value);
  return tensor;
}

template <class T>
Tensor Tensor::from(std::span<const T> values, Shape shape, Device device) {
  check<ShapeError>(static_cast<std::int64_t>(values.size()) == shape.elements(), "tensor",
                    "got {} values, wanted {} for {}", values.size(), shape.elements(), shape);
  Tensor host = empty(shape, dtype_of<T>());
  if (!values.empty()) std::memcpy(host.data<T>(), values.data(), values.size_bytes());
  return host.to(device);
}
template Tensor Tensor::from(std::span<const float>, Shape, Device);
template Tensor Tensor::from(std::span<const double>, Shape, Device);

Tensor Tensor::slice(std::int64_t begin, std::int64_t end) const {
  check<ShapeError>(rank() >= 1 && 0 <= begin && begin <= end && end <= size(0), "tensor",
                    "got slice {} to {}, wanted one within {}", begin, end, shape());
  Shape sliced{end - begin};
  std::int64_t stride = 1;
  for (int axis = 1; axis < rank(); ++axis) {
    sliced.push_back(size(axis));
    stride *= size(axis);
  }
  Tensor view = *this;
  view.shape_ = sliced;
  view.offset_ += static_cast<std::size_t>(begin * stride) * size_of(dtype_);
  return view;
}

Tensor Tensor::operator[](std::int64_t i) const {
  check<ShapeError>(rank() >= 1 && 0 <= i && i < size(0), "tensor",
                    "got index {}, wanted one in {}", i, shape());
  Tensor view = slice(i, i + 1);
  Shape rest;
  for (int axis = 1; axis < rank(); ++axis) rest.push_back(size(axis));
  view.shape_ = rest;
  return view;
}

Tensor Tensor::reshape(Shape shape) const {
  check<ShapeError>(shape.elements() == elements(), "reshape",
                    "got {} for {}: {} elements, wanted {}", shape, this->shape(), shape.elements(),
                    elements());
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::clone() const {
  Tensor result = empty(shape(), dtype(), device());
  copy(result, *this);
  return result;
}

Tensor Tensor::to(Device target) const {
  if (target == device()) return *this;
  Tensor result = empty(shape(), dtype(), target);
  copy(result, *this);
  return result;
}

Tensor Tensor::to(DType target) const {
  if (target == dtype()) return *this;
  Tensor result = empty(shape(), target, device());
  copy(result, *this);
  return result;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const Tensor host = to(Device::cpu()).to(dtype_of<T>());
  return std::vector<T>(host.data<T>(), host.data<T>() + elements());
}
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;

double Tensor::item() const {
  check<ShapeError>(elements() == 1, "item", "got {} with {} elements, wanted one element", shape(),
                    elements());
  return to_vector<double>()[0];
}

void fill(const Tensor& into, double value) {
  dispatch(into.dtype(), [&](auto t) {
    using T = decltype(t);
    with_policy(into.device(), [&](auto policy) {
      thrust::fill_n(policy, into.data<T>(), into.elements(), static_cast<T>(value));
    });
  });
}

void accumulate(const Tensor& into, const Tensor& x) {
  check_same_kind("accumulate", "into", into, "x", x);
  check<ShapeError>(into.shape() == x.shape(), "accumulate", "got x {}, wanted {}", x.shape(),
                    into.shape());
  dispatch(into.dtype(), [&](auto t) {
    using T = decltype(t);
    with_policy(into.device(), [&](auto policy) {
      thrust::transform(policy, into.data<T>(), into.data<T>() + into.elements(), x.data<T>(),
                        into.data<T>(), thrust::plus<T>());
    });
  });
}

void copy(const Tensor& into, const Tensor& x) {
  check<ShapeError>(into.elements() == x.elements(), "copy", "got {} into {}", x.shape(),
                    into.shape());
  if (into.dtype() == x.dtype()) return copy_bytes(into, x);
  if (into.device() != x.device()) return copy(into, x.to(into.device()));
  dispatch(x.dtype(), [&](auto from) {
    dispatch(into.dtype(), [&](auto to) {
      with_policy(x.device(), [&](auto policy) {
        const auto* source = x.data<decltype(from)>();
        thrust::copy_n(policy, source, x.elements(), into.data<decltype(to)>());
      });
    });
  });
}

void check_same_kind(const char* tag, const char* name_a, const Tensor& a, const char* name_b,
                     const Tensor& b) {
  check<ShapeError>(a.dtype() == b.dtype(), tag, "{} is {}, {} is {}: wanted one dtype", name_a,
                    name_of(a.dtype()), name_b, name_of(b.dtype()));
  check<DeviceError>(a.device() == b.device(), tag, "{} is on {}, {} on {}: wanted one device",
                     name_a, a.device(), name_b, b.device());
}

}  // namespace keel
