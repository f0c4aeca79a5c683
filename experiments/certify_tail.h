// keel certify --tail: a SPEC of what stands at the end of a larger net, of whatever kind that is.
#pragma once

#include <string>

#include "../nn/safetensors.h"
#include "certify_trained.h"

namespace keel {

/// The choice's file: all of it, or of a larger net's what belongs to `modules`, which are its
/// tail. Throws keel::Error as read_safetensors().
SafeTensors read_choice(const TrainedChoice& choice);

/// What is proved of a tail takes for granted; "" where the file has nothing else.
std::string note_of_tail(const SafeTensors& file, const TrainedChoice& choice);

/// Of a net that was taken for a whole one, what to add to an error of its file or of
/// run_trained(): "; ..." where the same SPEC and modules would do with --tail, "" elsewhere. Not
/// where all that SPEC leaves out are vectors, as of a norm or PReLU: these stand anywhere.
std::string tail_hint(const TrainedChoice& choice, const Context& context);

}  // namespace keel
