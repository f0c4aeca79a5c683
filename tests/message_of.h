// What an error says, for tests that read it word for word.
#pragma once

#include <string>

#include "../core/error.h"

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const keel::Error& error) {
    return error.what();
  }
  return "no error";
}
