// Ctrl-C in the middle of a regression, and what a terminal sees of one.
#include "../../experiments/watch.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "../../core/random.h"
#include "../../experiments/npy.h"
#include "../../nn/weights.h"
#include "helpers.h"

namespace keel {
namespace {

constexpr const char* kSmallNet = "dense(8) layernorm relu dense(1)";

std::string rows_text(std::int64_t rows) {
  const auto draws = normal({rows, 3}, {5, 0}, 1, DType::f64).to_vector<double>();
  std::string text = "a,b,y\n";
  for (std::size_t i = 0; i < draws.size(); i += 3)
    text += fmt::format("{},{},{}\n", draws[i], draws[i + 1], draws[i + 2]);
  return text;
}

// While it lives, sends one SIGINT as soon as somebody other than the test framework listens.
class CtrlC {
 public:
  CtrlC() {
    struct sigaction before {};
    sigaction(SIGINT, nullptr, &before);
    thread_ = std::thread([this, before] {
      while (!gone_) {
        struct sigaction action {};
        sigaction(SIGINT, nullptr, &action);
        if (action.sa_handler != before.sa_handler) {
          std::raise(SIGINT);
          return;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  ~CtrlC() {
    gone_ = true;
    thread_.join();
  }
  CtrlC(const CtrlC&) = delete;
  CtrlC& operator=(const CtrlC&) = delete;

 private:
  std::atomic<bool> gone_{false};
  std::thread thread_;
};

TEST_CASE("watch: Ctrl-C ends a regression with one line and 130, and leaves nothing") {
  const TemporaryFolder folder;
  const std::string table = folder.file("t.csv", rows_text(5000));
  for (const char* command : {"regress", "certify"}) {
    CAPTURE(command);
    std::vector<std::string> arguments = {
        command, "--net",        kSmallNet,          "--data", table,     "--target", "y",
        "--out", folder / "out", "--ridge-relative", "0.1",    "--quiet", "--device", "cpu"};
    if (command == std::string("regress"))
      arguments.insert(arguments.end(), {"--save", folder / "p.csv"});
    const CtrlC ctrl_c;
    const Ran ran = run_keel(arguments);
    CHECK(ran.code == 130);
    CHECK(ran.out == "");
    CHECK(ran.err == "keel: stopped\n");
    CHECK_FALSE(std::filesystem::exists(folder / "p.csv"));
    CHECK_FALSE(std::filesystem::exists(folder / "out"));
  }
}

TEST_CASE("watch: Ctrl-C ends certify of a net early, and what it has by then is written") {
  const TemporaryFolder folder;
  const std::string net = "dense(16) layernorm relu dense(16) relu dense(1)";
  save_weights(Net(net, 6, {.seed = 3}), folder / "w.safetensors");
  const auto certify = [&](const char* boxes) {
    return run_keel({"certify", "--mode", "trained", "--net", net, "--weights",
                     folder / "w.safetensors", "--boxes", boxes, "--out", folder / "out",
                     "--device", "cpu"});
  };
  const Ran whole = certify("0");
  REQUIRE(whole.code == 0);
  const double most = json_of(folder / "out/summary.json")["largest_found"];
  std::filesystem::remove_all(folder / "out");
  const CtrlC ctrl_c;
  const Ran ran = certify("1000000000");
  CHECK(ran.code == 130);
  CHECK(ran.err == "keel: stopped: what was proved and found until then holds, and is written\n");
  CHECK(ran.out.starts_with("proved: f(x) is never outside"));
  const auto summary = json_of(folder / "out/summary.json");
  CHECK(summary["stopped"] == true);
  CHECK(summary["bounded"] == true);
  CHECK(summary["bound"].get<double>() >= most);
  CHECK(summary["largest_found"].get<double>() > 0);
}

TEST_CASE("watch: Ctrl-C ends a kernel, computed or half written, and leaves no file") {
  const TemporaryFolder folder;
  write_npy(folder / "x.npy", normal({5000, 2}, {5, 0}, 1, DType::f64));
  for (const char* mode : {"infinite", "empirical"}) {
    CAPTURE(mode);
    const CtrlC ctrl_c;
    const Ran ran =
        run_keel({"ntk", "--net", kSmallNet, "--mode", mode, "--x1", folder / "x.npy", "--save",
                  folder / "k.npy", "--out", folder / "out", "--quiet", "--device", "cpu"});
    CHECK(ran.code == 130);
    CHECK(ran.err == "keel: stopped\n");
    CHECK(folder.names() == std::vector<std::string>{"x.npy"});
  }
  const std::string path = folder / "half.npy";
  const Tensor large = Tensor::zeros({5, 1 << 20}, DType::f64);  // three slices
  std::vector<double> heard;
  CHECK_THROWS_AS(write_npy(path, large,
                            [&](double done) {
                              heard.push_back(done);
                              if (heard.size() == 2) throw Interrupted();
                            }),
                  Interrupted);
  CHECK(heard == std::vector<double>{0.4, 0.8});
  CHECK(folder.names() == std::vector<std::string>{"x.npy"});
}

// What a terminal shows of `work`, run in a process of its own whose stderr it is.
template <class Work>
std::string seen_by_a_terminal(Work work) {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(ours >= 0);
  REQUIRE(grantpt(ours) == 0);
  REQUIRE(unlockpt(ours) == 0);
  const std::string name = ptsname(ours);
  const pid_t child = fork();
  if (child == 0) {
    const int theirs = open(name.c_str(), O_RDWR | O_NOCTTY);
    dup2(theirs, STDERR_FILENO);
    close(theirs);
    close(ours);
    work();
    _exit(0);
  }
  REQUIRE(child > 0);
  std::string seen;
  char part[1024];
  for (ssize_t got = read(ours, part, sizeof part); got > 0; got = read(ours, part, sizeof part))
    seen.append(part, static_cast<std::size_t>(got));
  close(ours);
  waitpid(child, nullptr, 0);
  return seen;
}

// A stage of this many milliseconds.
void run_stage(StageBar& bar, const char* name, int milliseconds) {
  for (int at = 0; at <= milliseconds; at += 10) {
    bar.update(name, static_cast<double>(at) / milliseconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST_CASE("watch: a stage that takes more than a second has a bar, which wipes itself") {
  const auto work = [](bool shown) {
    return [shown] {
      StageBar bar(shown);
      run_stage(bar, "short", 200);
      run_stage(bar, "long", 1300);
    };
  };
  const std::string seen = seen_by_a_terminal(work(true));
  CHECK(seen.find("long  [====") != std::string::npos);
  CHECK(seen.find("%") != std::string::npos);
  CHECK(seen.find("short") == std::string::npos);
  CHECK(seen.ends_with("\r\x1b[K"));
  CHECK(seen_by_a_terminal(work(false)) == "");
}

TEST_CASE("watch: Ctrl-C where nothing watches for it is said, behind a bar that is wiped") {
  const auto waits_after = [](void (*prepare)()) {
    return [prepare] {
      std::signal(SIGINT, SIG_DFL);
      prepare();
      std::fputs("fig1  [===", stderr);
      std::raise(SIGINT);
      std::fputs("still here", stderr);
    };
  };
  CHECK(seen_by_a_terminal(waits_after([] { say_when_stopped(); })) ==
        "fig1  [===\r\x1b[Kkeel: stopped\r\n");
  CHECK(seen_by_a_terminal(waits_after([] {
          std::signal(SIGINT, SIG_IGN);  // as nohup leaves it
          say_when_stopped();
        })) == "fig1  [===still here");
}

}  // namespace
}  // namespace keel
