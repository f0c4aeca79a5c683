# Runs a rehearsal of the report and reads what it wrote: cmake -DBENCH=... -DJSON=... -P
file(REMOVE "${JSON}")
execute_process(COMMAND "${BENCH}" --rehearse --no-peers --json "${JSON}"
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${BENCH}: ${status}")
endif()
file(READ "${JSON}" report)

string(JSON complete GET "${report}" complete)
string(JSON rehearsal GET "${report}" rehearsal)
string(JSON failed LENGTH "${report}" failed)
if(NOT complete OR NOT rehearsal OR NOT failed EQUAL 0)
  message(FATAL_ERROR
    "complete ${complete}, rehearsal ${rehearsal}, failed sections ${failed}; wanted ON, ON, 0")
endif()

set(sections "copy" "layer_norm forward" "layer_norm_relu backward" "gelu forward" "softplus backward" "adam" "training epoch"
  "transformer step"
  "empirical NTK" "infinite NTK" "cholesky" "regression to" "exact regression"
  "  factor and refine, 300 inputs" "protein epoch"
  "Figure 1")
string(JSON rows LENGTH "${report}" rows)
math(EXPR last "${rows} - 1")
foreach(row RANGE ${last})
  string(JSON name GET "${report}" rows ${row} name)
  string(JSON seconds GET "${report}" rows ${row} median_s)
  if(NOT seconds GREATER 0)
    message(FATAL_ERROR "${name}: ${seconds} s, wanted more than 0")
  endif()
  foreach(section IN LISTS sections)
    if(name MATCHES "^${section}")
      list(REMOVE_ITEM sections "${section}")
    endif()
  endforeach()
endforeach()
if(sections)
  message(FATAL_ERROR "no row of: ${sections}")
endif()
