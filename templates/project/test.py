"""Checks ${ plan.name } on the card in this machine, over a matrix of shapes.

    pytest test_${ plan.name }.py           one test per case
    python test_${ plan.name }.py [--json]  a line per case; exit code 0 right, 1 wrong, 3 no card, 4 hung

Needs the library (`make`), numpy, ml_dtypes and cuda-python. Operands are fresh random numbers; KGEN_SEED repeats a
run. Every byte of D and around it is poisoned before the launch, and so is what lies around A and B.
"""

import ctypes
import json
/*% if plan.finish %*/
import math
/*% endif %*/
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
from cuda.bindings import runtime as cudart

NAME = "${ plan.name }"
INPUT = np.dtype(${ plan.input.numpy })
OUTPUT = np.dtype(${ plan.output.numpy })
BLOCK_M, BLOCK_N, BLOCK_K = ${ plan.cta_tile | join(", ") }  # of one CTA
TILE_M, TILE_N = ${ plan.cluster_tile | join(", ") }  # of one cluster
MMA_K = ${ plan.mma_shape[2] }
STAGES = ${ plan.stages }
TMA_OPERANDS = ${ plan.tensor_maps | selectattr("stride") | map(attribute="operand") | list }  # rows of these must be 16 bytes apart
WATCHDOG_SECONDS = 60
/*% if "workspace" in plan.parts %*/
WORKSPACES = {}  # (m, n) -> address: one serves every launch of that size
/*% endif %*/
SEED = int(os.environ.get("KGEN_SEED", secrets.randbits(32)))
INVALID, MISALIGNED = cudart.cudaError_t.cudaErrorInvalidValue, cudart.cudaError_t.cudaErrorMisalignedAddress


${ part("project/test/args.py") }


${ part(plan.parts.shapes) }
/*% if "packed" in plan.parts %*/
SHAPES = [(m, n, k + k % 2) for m, n, k in SHAPES]  # two elements to a byte
/*% endif %*/


${ part(plan.parts.operands_py) }
/*% if plan.pairs %*/
SHAPES = [(m, n + n % 2, k) for m, n, k in SHAPES]  # columns of the product in pairs
/*% endif %*/


${ part("project/test/library.py") }


${ part("project/test/card.py") }


/*% if plan.finish %*/
${ part("project/test/epilogue.py") }


/*% endif %*/
${ part("project/test/wait.py") }


${ part("project/test/launch.py") }


${ part("project/test/reference.py") }


${ part("project/test/case.py") }


${ part("project/test/refusals.py") }


${ part("project/test/captured.py") }


${ part("project/test/report.py") }
