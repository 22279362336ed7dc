// nanquest-trainer of the Python package: all of it is in the library that `nanquest train` loads.
extern "C" int nanquest_trainer(int argc, char** argv, const char* group);

int main(int argc, char** argv) {
  return nanquest_trainer(argc, argv, "");  // of several ranks those of torchrun come through Python
}
