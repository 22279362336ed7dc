"""A program that keeps its own HDF5 file open, and writes it in its training and in a thread while incidents are written.

usage: own_files.py before|after: h5py is imported before or after torch
"""
import sys
import threading

if sys.argv[1] == "before":
    import h5py
import torch
from training import Training

if sys.argv[1] == "after":
    import h5py

file = h5py.File("mine.h5", "w", libver="latest")
steps = file.create_dataset("steps", (0,), maxshape=(None,), dtype="i8", chunks=(16,))
halves = file.create_dataset("halves", (64,), dtype="f2")
file.swmr_mode = True
training = Training()
stop = threading.Event()


def scribble():
    written = 0
    with h5py.File("thread.h5", "w") as other:
        while not stop.is_set() or written < 20:
            other[f"x{written}"] = torch.full((100,), float(written)).numpy()
            written += 1
        other.attrs["written"] = written


thread = threading.Thread(target=scribble)
thread.start()
for i in range(12):
    training.step(bad=i >= 4)
    steps.resize((i + 1,))
    steps[i] = i
    halves[i] = i / 2
    file.flush()
stop.set()
thread.join()
file.close()
print(training.digest())
