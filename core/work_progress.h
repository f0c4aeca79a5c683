// WorkProgress: how whoever waits for long work hears of it, and ends it.
#pragma once

#include <functional>

namespace keel {

/// Told how much of a piece of work is done, from 0 to 1, by the thread that asked for the work;
/// results do not depend on it. What it throws ends the work. Empty: nobody asks.
using WorkProgress = std::function<void(double done)>;

}  // namespace keel
