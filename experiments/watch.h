// Watch: what a person at a terminal sees of long work, and how they end it.
#pragma once

#include <optional>
#include <string>

#include "../core/work_progress.h"
#include "command.h"
#include "interrupt.h"
#include "progress_bar.h"

namespace keel {

/// While it lives, each stage of the work has a bar, and Ctrl-C throws Interrupted out of it. A GPU
/// tells of no progress, and so does not hear either: there, Ctrl-C ends the process, as it does
/// without a Watch.
class Watch {
 public:
  explicit Watch(const Context& context) : bar_(context.shows_progress()) {
    if (context.device.is_cpu()) interrupt_.emplace();
  }

  void update(std::string_view stage, double done) {
    if (interrupt_) interrupt_->check();
    bar_.update(stage, done);
  }

  /// For work of one stage.
  WorkProgress of(std::string stage) {
    return [this, stage = std::move(stage)](double done) { update(stage, done); };
  }

 private:
  StageBar bar_;
  std::optional<Interrupt> interrupt_;
};

}  // namespace keel
