"""Programs that make processes while they train, and one that ends at once.

usage: processes.py fork|fork-trains|fork-late|mp-fork|mp-spawn|os-exit

fork-late: the child ends in order when the parent's files have long grown beyond what the child knows of.
"""
import multiprocessing
import os
import sys
import time

import torch
from training import Training


def child_work(queue=None):
    inner = Training(seed=5)
    for i in range(4):
        inner.step(bad=i == 3)
    if queue is not None:
        queue.put(inner.digest())


def outlived_by_a_child(training):
    wait, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(wait, 1)
        sys.exit(3)
    for i in range(1000):
        training.step()
        if i in (880, 890, 900):
            time.sleep(1.1)  # rows go to the disk about once a second
    os.write(go, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    training.step()


def main(what):
    training = Training()
    for i in range(8):
        training.step(bad=i == 6)
        if i % 2:
            continue
        if what in ("fork", "fork-trains"):
            pid = os.fork()
            if pid == 0:
                if what == "fork-trains":
                    for k in range(3):
                        training.step(bad=k == 1)
                sys.exit(3)  # an end with everything that runs at an end
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        elif what == "mp-fork" or (what == "mp-spawn" and i == 2):
            context = multiprocessing.get_context(what[3:])
            queue = context.Queue()
            process = context.Process(target=child_work, args=(queue,))
            process.start()
            print(queue.get(timeout=120))
            process.join()
            assert process.exitcode == 0, process.exitcode
    if what == "fork-late":
        outlived_by_a_child(training)
    print(training.digest(), flush=True)
    if what == "os-exit":
        os._exit(7)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
