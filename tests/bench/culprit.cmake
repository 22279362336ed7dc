nanquest_bench(culprit_bench SOURCES culprit_bench.cpp ../trace/steps.cpp LINK nanquest::trace)
