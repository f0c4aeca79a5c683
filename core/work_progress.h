// WorkProgress: how whoever waits for long work hears of it, and ends it.
#pragma once

#include <atomic>
#include <functional>

namespace keel {

/// Told how much of a piece of work is done, from 0 to 1, by the thread that asked for the work;
/// results do not depend on it. What it throws ends the work. Empty: nobody asks.
using WorkProgress = std::function<void(double done)>;

/// Raised by another thread, or by a signal, where work is to end soon with what it has by then.
/// Null: nobody wants that.
using StopFlag = const std::atomic<bool>*;

inline bool raised(StopFlag stop) { return stop != nullptr && stop->load(); }

}  // namespace keel
