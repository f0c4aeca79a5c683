// The runner of PTX itself, on a few lines written for it.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../fatal.h"
#include "library.h"

using namespace keel::emulated;

namespace {

// A kernel of one parameter, the address of `out` in %rd1; %r1 is the thread.
ptx::Kernel kernel_of(const std::string& body) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("keel_ptx_test_" + std::to_string(getpid()) + ".ptx");
  std::ofstream(path) << ".version 9.0\n.target sm_86\n.address_size 64\n\n"
                         ".func  (.param .b64 result) twice(\n\t.param .b64 of\n)\n{\n"
                         "\t.reg .f64 %fd<3>;\n\tld.param.f64 %fd1, [of];\n"
                         "\tadd.f64 %fd2, %fd1, %fd1;\n\tst.param.f64 [result+0], %fd2;\n\tret;\n"
                         "\n}\n\n"
                         ".visible .entry test(\n\t.param .u64 test_param_0\n)\n{\n"
                         "\t.reg .pred %p<9>;\n\t.reg .f32 %f<9>;\n\t.reg .b32 %r<9>;\n"
                         "\t.reg .f64 %fd<9>;\n\t.reg .b64 %rd<9>;\n"
                         "\t.shared .align 16 .b8 tile[256];\n"
                         "\tld.param.u64 %rd1, [test_param_0];\n\tmov.u32 %r1, %tid.x;\n"
                         "\tmul.wide.u32 %rd2, %r1, 4;\n\tadd.s64 %rd2, %rd1, %rd2;\n"
                      << body << "\n}\n";
  const ptx::Kernel kernel = ptx::Module(path.string()).compile("test");
  std::filesystem::remove(path);
  return kernel;
}

template <class T>
std::vector<T> run(const std::string& body, unsigned threads) {
  std::vector<T> out(threads, T(-1));
  T* const data = out.data();
  ptx::run_grid(kernel_of(body), 1, threads, 0,
                {std::string(reinterpret_cast<const char*>(&data), sizeof data)});
  return out;
}

}  // namespace

TEST_CASE("ptx: lanes part, meet again, and shuffle together") {
  const auto got = run<int>(
      "\tand.b32 %r2, %r1, 1;\n\tsetp.eq.s32 %p1, %r2, 0;\n\tmov.u32 %r3, 5;\n"
      "\t@%p1 bra $even;\n\tadd.s32 %r3, %r3, %r1;\n\tbra.uni $both;\n"
      "$even:\n\tmul.lo.s32 %r3, %r1, 100;\n"
      "$both:\n\tshfl.sync.bfly.b32 %r4|%p2, %r3, 1, 31, -1;\n\tst.global.u32 [%rd2], %r4;\n\tret;",
      64);
  for (int i = 0; i < 64; ++i) {
    CAPTURE(i);
    CHECK(got[static_cast<std::size_t>(i)] == (i % 2 == 0 ? 5 + i + 1 : 100 * (i - 1)));
  }
}

TEST_CASE("ptx: parts of a warp shuffle by themselves, wherever the others are") {
  // Lanes of 0 .. 15 shuffle twice, those of 16 .. 23 once, the last eight have left.
  const std::string part =
      "\tand.b32 %r2, %r1, 31;\n\tsetp.ge.u32 %p1, %r2, 24;\n\t@%p1 ret;\n"
      "\tsetp.ge.u32 %p1, %r2, 16;\n\tmov.u32 %r3, 65535;\n\t@%p1 mov.u32 %r3, 16711680;\n"
      "\tmov.u32 %r4, %r1;\n\t@%p1 bra $last;\n"
      "\tshfl.sync.bfly.b32 %r4|%p2, %r1, 8, 31, %r3;\n"
      "$last:\n\tshfl.sync.bfly.b32 %r5|%p2, %r4, 1, 31, %r3;\n";
  const auto got = run<int>(part + "\tst.global.u32 [%rd2], %r5;\n\tret;", 64);
  for (int i = 0; i < 64; ++i) {
    CAPTURE(i);
    const int lane = i % 32;
    CHECK(got[static_cast<std::size_t>(i)] == (lane >= 24 ? -1 : lane >= 16 ? i ^ 1 : i ^ 9));
  }
}

TEST_CASE("ptx: a loop whose lanes leave at different times") {
  const auto got = run<int>(
      "\tmov.u32 %r3, 0;\n\tmov.u32 %r2, 0;\n"
      "$loop:\n\tsetp.ge.u32 %p1, %r2, %r1;\n\t@%p1 bra $done;\n"
      "\tadd.s32 %r2, %r2, 1;\n\tadd.s32 %r3, %r3, %r2;\n\tbra.uni $loop;\n"
      "$done:\n\tst.global.u32 [%rd2], %r3;\n\tret;",
      40);
  for (int i = 0; i < 40; ++i) CHECK(got[static_cast<std::size_t>(i)] == i * (i + 1) / 2);
}

TEST_CASE("ptx: warps hand over through shared memory behind a barrier") {
  const auto got = run<int>(
      "\tmov.u32 %r2, tile;\n\tshl.b32 %r3, %r1, 2;\n\tadd.s32 %r4, %r2, %r3;\n"
      "\tst.shared.u32 [%r4], %r1;\n\tbar.sync 0;\n\txor.b32 %r5, %r3, 252;\n"
      "\tadd.s32 %r5, %r2, %r5;\n\tld.shared.u32 %r6, [%r5];\n\tst.global.u32 [%rd2], %r6;\n\tret;",
      64);
  for (int i = 0; i < 64; ++i) CHECK(got[static_cast<std::size_t>(i)] == 63 - i);
}

TEST_CASE("ptx: arithmetic at its edges") {
  const auto one = [](const std::string& body) { return run<int>(body + "\tret;", 1)[0]; };
  CHECK(one("\tshl.b32 %r2, 1, 32;\n\tst.global.u32 [%rd2], %r2;\n") == 0);
  CHECK(one("\tmov.u32 %r2, -8;\n\tshr.s32 %r3, %r2, 40;\n\tst.global.u32 [%rd2], %r3;\n") == -1);
  CHECK(one("\tmov.b32 %r2, -1;\n\tbfi.b32 %r3, 5, %r2, 4, 3;\n\tst.global.u32 [%rd2], %r3;\n") ==
        -33);
  CHECK(one("\tbfi.b32 %r3, -1, 0, 30, 9;\n\tst.global.u32 [%rd2], %r3;\n") == -1073741824);
  CHECK(one("\tcvt.rn.f32.u32 %f1, -1;\n\tmov.b32 %r2, %f1;\n\tst.global.u32 [%rd2], %r2;\n") ==
        0x4f800000);
  CHECK(one("\tdiv.s32 %r2, -7, 2;\n\tst.global.u32 [%rd2], %r2;\n") == -3);
  CHECK(one("\trem.s32 %r2, -7, 2;\n\tst.global.u32 [%rd2], %r2;\n") == -1);
  CHECK(one("\tmul.hi.s32 %r2, -1, 1;\n\tst.global.u32 [%rd2], %r2;\n") == -1);
  CHECK(one("\tcvt.rzi.s32.f32 %r2, 0f7F800000;\n\tst.global.u32 [%rd2], %r2;\n") == 2147483647);
  CHECK(one("\tcvt.rni.f32.f32 %f1, 0f40200000;\n\tmov.b32 %r2, %f1;\n"  // 2.5
            "\tst.global.u32 [%rd2], %r2;\n") == 0x40000000);
  // NaN: less than nothing, but "neu" to all; and the other one is the larger.
  CHECK(one("\tsetp.lt.f32 %p1, 0f7FC00000, 0f3F800000;\n\tselp.u32 %r2, 1, 0, %p1;\n"
            "\tst.global.u32 [%rd2], %r2;\n") == 0);
  CHECK(one("\tsetp.neu.f32 %p1, 0f7FC00000, 0f3F800000;\n\tselp.u32 %r2, 1, 0, %p1;\n"
            "\tst.global.u32 [%rd2], %r2;\n") == 1);
  CHECK(one("\tmax.f32 %f1, 0f7FC00000, 0f3F800000;\n\tmov.b32 %r2, %f1;\n"
            "\tst.global.u32 [%rd2], %r2;\n") == 0x3f800000);
  CHECK(one("\tmov.b64 %rd3, {7, 9};\n\tmov.b64 {%r2, %r3}, %rd3;\n\tsub.s32 %r4, %r3, %r2;\n"
            "\tst.global.u32 [%rd2], %r4;\n") == 2);
}

TEST_CASE("ptx: a product without a rounding is fused, one with it is not") {
  // 0.1f * 0.1f less its own rounding: 0, or what the rounding took.
  const std::string first = "\tmov.f32 %f1, 0f3DCCCCCD;\n\tmul.rn.f32 %f2, %f1, %f1;\n";
  const std::string last = "\tsub.f32 %f4, %f3, %f2;\n\tst.global.f32 [%rd2], %f4;\n\tret;";
  const float lost = std::fma(0.1f, 0.1f, -(0.1f * 0.1f));
  REQUIRE(lost != 0);
  CHECK(run<float>(first + "\tmul.f32 %f3, %f1, %f1;\n" + last, 1)[0] == lost);
  CHECK(run<float>(first + "\tmul.rn.f32 %f3, %f1, %f1;\n" + last, 1)[0] == 0);
  // Whose factor has changed since: not.
  CHECK(run<float>(first + "\tmul.f32 %f3, %f1, %f1;\n\tmov.f32 %f1, 0f00000000;\n" + last, 1)[0] ==
        0);
}

TEST_CASE("ptx: functions are called") {
  const auto got = run<double>(
      "\tmov.f64 %fd1, 0d4008000000000000;\n\t{\n\t.param .b64 param0;\n"
      "\tst.param.f64 [param0+0], %fd1;\n\t.param .b64 retval0;\n\tcall.uni (retval0), \n\ttwice, "
      "\n\t(\n\tparam0\n\t);\n\tld.param.f64 %fd2, [retval0+0];\n\t}\n"
      "\tst.global.f64 [%rd1], %fd2;\n\tret;",
      1);
  CHECK(got[0] == 6);
}

TEST_CASE("ptx: what a GPU would not survive ends the program") {
  const auto says = [](const std::string& words, const std::string& body, unsigned threads) {
    const Death death = death_of([&] { run<int>(body, threads); });
    CAPTURE(death.words);
    CHECK(death.died);
    CHECK(death.words.find(words) != std::string::npos);
  };
  says("not aligned", "\tst.global.u32 [%rd2+2], %r1;\n\tret;", 1);
  says("of 256 bytes", "\tst.shared.u32 [tile+256], %r1;\n\tret;", 1);
  says("has left", "\tsetp.eq.s32 %p1, %r1, 3;\n\t@%p1 ret;\n\tbar.sync 0;\n\tret;", 32);
  says("are not there",
       "\tsetp.eq.s32 %p1, %r1, 3;\n\t@%p1 bra $out;\n"
       "\tshfl.sync.bfly.b32 %r4|%p2, %r1, 1, 31, -1;\n$out:\n\tret;",
       32);
  says("not of its shuffle", "\tshfl.sync.bfly.b32 %r4|%p2, %r1, 1, 31, 1;\n\tret;", 1);
  says("not of its own", "\tshfl.sync.bfly.b32 %r4|%p2, %r1, 1, 31, 2;\n\tret;", 32);
  says("not known", "\tfma.rz.f32 %f1, %f1, %f1, %f1;\n\tret;", 1);
  says("never waited",
       "\tmov.u32 %r2, tile;\n\tcp.async.ca.shared.global [%r2], [%rd1], 4;\n\tret;", 1);
}

TEST_CASE("ptx: nvcc's names of anonymous namespaces are the host's") {
  CHECK(ptx::host_name("_ZN4keel45_GLOBAL__N__dc6502cd_12_fused_mlp_cu_fe5bd65f10sum_kernelENS_9"
                       "FusedTaskE") == "_ZN4keel12_GLOBAL__N_110sum_kernelENS_9FusedTaskE");
  CHECK(ptx::host_name("_Z3foo12bar") == "_Z3foo12bar");
}
