#include "../../core/device.h"

#include <doctest/doctest.h>

#include <string>

using namespace keel;

// Says so by the test's name.
static bool no_gpu() {
  if (cuda_device_count() == 0) MESSAGE("skipped: no GPU is visible");
  return cuda_device_count() == 0;
}

TEST_CASE("a device is a value, the CPU by default") {
  constexpr Device cpu = Device::cpu();
  static_assert(cpu.is_cpu() && !cpu.is_cuda());
  CHECK(Device() == cpu);
  CHECK(cpu.index() == 0);
  CHECK(cpu.str() == "cpu");
}

TEST_CASE("devices are named by cpu, cuda, cuda:N and auto") {
  CHECK(Device::parse("cpu") == Device::cpu());
  const int count = cuda_device_count();
  CHECK(Device::parse("auto").is_cuda() == (count > 0));
  if (count > 0) {
    CHECK(Device::parse("auto") == Device::cuda(0));
    CHECK(Device::parse("cuda") == Device::cuda(0));
    CHECK(Device::parse("cuda:0") == Device::cuda(0));
    CHECK(Device::parse("cuda:0").str() == "cuda:0");
    CHECK(Device::cuda(0) != Device::cpu());
  } else {
    CHECK(Device::parse("auto") == Device::cpu());
  }
}

TEST_CASE("other words name no device") {
  for (const char* text :
       {"", "CPU", "gpu", "cpu ", " cpu", "cuda:", "cuda:x", "cuda:0x", "cuda:0 ", "cuda: 0",
        "cuda:1.5", "cuda:99999999999999999999", "cudas", "cuda0"}) {
    CAPTURE(text);
    const std::string message =
        "device: got '" + std::string(text) + "', wanted auto, cpu, cuda or cuda:N";
    CHECK_THROWS_WITH_AS(Device::parse(text), message.c_str(), DeviceError);
  }
}

TEST_CASE("without a GPU, asking for one says which build option or driver is missing") {
  if (cuda_device_count() > 0) {
    CHECK(why_no_cuda().empty());
    return;
  }
  const std::string why = why_no_cuda();
  const bool names_option = why.find("-DKEEL_CUDA=ON") != std::string::npos;
  const bool names_driver = why.find("CUDA driver") != std::string::npos;
  CHECK(names_option != names_driver);
  CHECK_THROWS_WITH_AS(Device::cuda(), ("device: got cuda:0, but " + why).c_str(), DeviceError);
  CHECK_THROWS_WITH_AS(Device::cuda(3), ("device: got cuda:3, but " + why).c_str(), DeviceError);
  CHECK_THROWS_WITH_AS(Device::parse("cuda"), ("device: got cuda:0, but " + why).c_str(),
                       DeviceError);
  CHECK_THROWS_WITH_AS(Device::parse("cuda:7"), ("device: got cuda:7, but " + why).c_str(),
                       DeviceError);
  CHECK_THROWS_AS(Device::parse("cuda:-1"), DeviceError);
}

TEST_CASE("with a GPU, an index out of range names the range") {
  const int count = cuda_device_count();
  if (no_gpu()) return;
  const std::string message =
      fmt::format("device: got cuda:{}, wanted cuda:0 to cuda:{}", count, count - 1);
  CHECK_THROWS_WITH_AS(Device::cuda(count), message.c_str(), DeviceError);
  CHECK_THROWS_AS(Device::cuda(-1), DeviceError);
  CHECK_THROWS_AS(Device::parse("cuda:-1"), DeviceError);
}

TEST_CASE("the CPU describes itself") {
  const DeviceInfo info = describe(Device::cpu());
  CHECK_FALSE(info.name.empty());
  CHECK_FALSE(info.architecture.empty());
  CHECK(info.units >= 1);
  CHECK(info.total_bytes > (std::size_t{64} << 20));
  CHECK(info.total_bytes < (std::size_t{1} << 50));
  CHECK(info.free_bytes > 0);
  CHECK(info.free_bytes <= info.total_bytes);
}

TEST_CASE("a GPU describes itself") {
  if (no_gpu()) return;
  const DeviceInfo info = describe(Device::cuda());
  CHECK_FALSE(info.name.empty());
  CHECK(info.architecture.starts_with("sm_"));
  CHECK(info.units >= 1);
  CHECK(info.free_bytes > 0);
  CHECK(info.free_bytes <= info.total_bytes);
}

TEST_CASE("the CPU has no stream, and scopes and waits on it do nothing") {
  CHECK(current_stream(Device::cpu()) == nullptr);
  {
    const StreamScope scope(Device::cpu());
    CHECK(current_stream(Device::cpu()) == nullptr);
  }
  CHECK_NOTHROW(synchronize(Device::cpu()));
}

TEST_CASE("a stream scope gives a GPU a stream of its own, and the old one back") {
  if (no_gpu()) return;
  const Device gpu = Device::cuda();
  void* outside = current_stream(gpu);
  {
    const StreamScope scope(gpu);
    void* inside = current_stream(gpu);
    CHECK(inside != outside);
    {
      const StreamScope nested(gpu);
      CHECK(current_stream(gpu) != inside);
    }
    CHECK(current_stream(gpu) == inside);
  }
  CHECK(current_stream(gpu) == outside);
}
