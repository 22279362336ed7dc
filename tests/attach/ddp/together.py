"""What tests of programs of several processes share: two ranks of one program, with and without the probe."""

import os
import pathlib
import signal
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from attached import AttachTest  # noqa: E402

# What a process says that PyTorch's own threads outlived (seen once in some hundreds of runs without the probe, pytorch issue 190489).
# Weights are saved by then: a program without the probe is forgiven, one with it is not.
AT_ITS_END = "terminate called without an active exception"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


class TogetherTest(AttachTest):
    program, launched = "train.py", False  # launched: by torchrun

    def together(self, *arguments, options=None, run_dir="run", code=0, ranks=2):
        """All ranks, with the probe if there are options. What they said on stderr."""
        program = [sys.executable, HERE / self.program, *arguments]
        probe = [sys.executable, "-m", "nanquest", "run", "--run-dir", run_dir, *(options or ()), "--"]
        if self.launched:
            agent = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port", free_port()]
            commands = [([*(probe if options is not None else ()), *agent, *program[1:]], {})]
        else:  # what torchrun would set, without its own process
            port, run = free_port(), f"test {os.getpid()} {run_dir}"
            commands = [([*(probe if options is not None else ()), *program],
                         {"RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                          "NANQUEST_RUN_ID": run}) for r in range(ranks)]
        running = [subprocess.Popen([str(c) for c in command], cwd=self.scratch, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, env=self.environment(**more)) for command, more in commands]
        errors = [process.communicate(timeout=280)[1] for process in running]
        for process, err in zip(running, errors):
            # torchrun ends with 1 and names what its processes ended with.
            if self.launched and code:
                self.assertEqual((process.returncode, err.count(f"exitcode  : {code} ")), (1, ranks), err)
            elif not (options is None and process.returncode == -signal.SIGABRT and AT_ITS_END in err):
                self.assertEqual(process.returncode, code, "\n".join(errors))
        return "\n".join(errors)

    def weights(self, name, ranks=2):
        import torch
        return [torch.load(self.scratch / f"{name}.{rank}") for rank in range(ranks)]

    def assert_same_bits(self, one, other):
        for a, b in zip(self.weights(one), self.weights(other)):
            self.assertEqual(different(a, b), [])
            self.assertTrue(a)


def different(one, other):
    """Names of tensors that are not the same in both, bit for bit."""
    return [name for name in dict.fromkeys([*one, *other]) if name not in one or name not in other or
            one[name].numpy().tobytes() != other[name].numpy().tobytes()]
