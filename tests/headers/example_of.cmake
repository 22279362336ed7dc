# cmake -DHEADER=… -DEXAMPLE=… -P example_of.cmake: the example in a header's comment, without the comment's marks.
file(READ "${HEADER}" _text)
string(PREPEND _text "\n")
string(REPLACE "\n///     " "\n@" _text "${_text}")
string(REGEX REPLACE "\n[^@\n][^\n]*" "" _text "${_text}")
string(REPLACE "\n@" "\n" _text "${_text}")
file(WRITE "${EXAMPLE}" "${_text}\n")
