import subprocess
import sys

from kgen.memory_watch import PeakMemory


def peak_of(script: str) -> float:
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    memory = PeakMemory(process.pid)
    process.wait()
    return memory.stop()


def test_peak_of_a_small_child_is_small_whatever_this_process_holds():
    ballast = bytearray(500 << 20)
    ballast[::4096] = b"x" * len(ballast[::4096])
    assert 1 < peak_of("import time; time.sleep(0.2)") < 100


def test_memory_that_was_given_back_counts_and_so_do_grandchildren():
    hold = "b = bytearray(200 << 20); b[::4096] = b'x' * len(b[::4096]); time.sleep(0.1); del b; time.sleep(0.1)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {('import time; ' + hold)!r}])"
    assert 200 <= peak_of(child) < 400
