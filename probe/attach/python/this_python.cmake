# Read first when pip builds the package: LibTorch is that of the Python which installs it.
if(NOT LibTorch_ROOT AND Python_EXECUTABLE)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE _torch OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _rc)
  if(NOT _rc EQUAL 0 OR NOT _torch)
    message(FATAL_ERROR "nanquest: ${Python_EXECUTABLE} has no torch; install torch first, then: pip install --no-build-isolation .")
  endif()
  set(LibTorch_ROOT "${_torch}" CACHE PATH "LibTorch of the Python that installs the package")
endif()
