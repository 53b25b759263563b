"""The words of ptxas 13.0, one test per message that was provoked with a real kernel."""

import pytest

from kgen.ptxas import parse, short_name

SPILL = """\
ptxas warning : Local memory used for function 'spilling', size of stack frame: 416 bytes
ptxas warning : Registers are spilled to local memory in function 'spilling', 804 bytes spill stores, 824 bytes spill loads
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'spilling' for 'sm_90a'
ptxas info    : Function properties for spilling
    416 bytes stack frame, 804 bytes spill stores, 824 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 416 bytes cumulative stack size
ptxas info    : Compile time = 66.146 ms
"""  # noqa: E501
CALL = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'calls' for 'sm_90a'
ptxas info    : Function properties for calls
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 3 barriers, 256 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 11.179 ms
ptxas info    : Function properties for helper
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""
LOSS = "ptxas info    : ({}) Potential Performance Loss: {}"


def test_resources_of_a_kernel_that_spills():
    (kernel,), notes = parse(SPILL)
    assert (kernel.name, kernel.registers, kernel.stack_frame) == ("spilling", 32, 416)
    assert (kernel.spill_stores, kernel.spill_loads, kernel.smem, kernel.barriers) == (804, 824, 0, 0)
    assert [n.severity for n in notes] == ["warning", "warning"]
    assert "smaller tile" in notes[1].why


def test_a_called_function_is_not_taken_for_the_kernel():
    (kernel, helper, second), notes = parse(CALL)
    assert (kernel.entry, kernel.registers, kernel.barriers, kernel.smem) == (True, 168, 3, 256)
    assert (helper.entry, helper.registers, helper.stack_frame, helper.spill_loads) == (False, 0, 16, 8)
    assert (second.entry, second.registers) == (True, 8)
    assert notes == ()


@pytest.mark.parametrize(
    ("line", "severity", "code", "why"),
    [
        (
            LOSS.format(
                "C7510", "wgmma.mma_async instructions are serialized due to wgmma pipeline crossing"
            ),
            "info",
            "C7510",
            "tensor cores idle",
        ),
        (
            LOSS.format("C7508", "'setmaxnreg' ignored; unable to determine register count at entry."),
            "info",
            "C7508",
            "__launch_bounds__",
        ),
        (
            LOSS.format("C7504", "'setmaxnreg' ignored to maintain compatibility across compilation units."),
            "info",
            "C7504",
            "-rdc",
        ),
        (LOSS.format("C7505", "'setmaxnreg' ignored to allow debugging."), "info", "C7505", "-G"),
        (
            LOSS.format("C7599", "'setmaxnreg' ignored to please a later release."),
            "info",
            "C7599",
            "equal registers",
        ),
        (
            "ptxas info    : (C7519) warpgroup.arrive is injected in around line 132 by compiler",
            "info",
            "C7519",
            "wgmma.fence",
        ),
        (
            "ptxas info    : (C7517) warpgroup.wait is injected in around line 125 by compiler to allow use",
            "info",
            "C7517",
            "wait_group",
        ),
        (
            "ptxas fatal   : (C7602) Insufficient registers (128) to compile instruction at line 311",
            "error",
            "C7602",
            "register split",
        ),
        (
            "ptxas x.ptx, line 9; fatal   : Unsupported .version 9.5; current version is '9.0'",
            "error",
            "",
            "newer",
        ),
        ("ptxas x.ptx, line 31; warning : Advisory: '.multicast::cluster' modifier", "warning", "", ""),
        ('k.cu(1): warning #177-D: variable "x" was declared but never referenced', "warning", "", ""),
        ('k.cu(1): error #177-D: variable "x" was declared but never referenced', "error", "", ""),
        ("k.cu:3:25: error: unused parameter 'x' [-Werror=unused-parameter]", "error", "", ""),
        ("k.cu:4:10: fatal error: nv/target: No such file or directory", "error", "", ""),
        ("/usr/bin/ld: cannot find -lcudart_static: No such file or directory", "error", "", ""),
        ("ptxas info    : Overriding global maxrregcount 64 with entry-specific value 168", "info", "", ""),
    ],
)
def test_each_message_is_seen_and_explained(line, severity, code, why):
    _, (note,) = parse(line)
    assert (note.line, note.severity, note.code) == (line, severity, code)
    assert why in note.why if why else note.why == ""


def test_statistics_and_echoed_source_are_not_notes():
    quiet = "ptxas info    : 4 bytes gmem\n  static int unusedfn(int x){}\n             ^\n\nRemark\n"
    assert parse(quiet) == ((), ())


def test_short_names():
    internal = "_ZN37_GLOBAL__N__bdd03cd8_8_scale_cu_scale12scale_kernelEP13__nv_bfloat16i14CUtensorMap_st"
    assert short_name(internal) == "scale_kernel"
    assert short_name("_Z4stepRA32_fmm") == "step"
    assert short_name("_Z7compare15gemm_step9_argsPy") == "compare", "a parameter's type is not the function"
    assert short_name("plain_c") == "plain_c"
