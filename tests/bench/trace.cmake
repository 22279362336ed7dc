if(TARGET nanquest::capture)
  nanquest_bench(trace_bench TORCH SOURCES trace_bench.cpp LINK nanquest::capture)
endif()
