if(TARGET nanquest::probe)
  nanquest_bench(guard_bench TORCH SOURCES guard_bench.cpp LINK nanquest::probe)
endif()
