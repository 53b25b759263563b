CASES = {f"{m}x{n}x{k} {kind}": (run_case, (m, n, k), kind) for kind in ("normal", "integers") for m, n, k in SHAPES}
CASES |= {"refusals": (run_refusals,), "first call captured": (run_captured,)}


def test_cases(case):
    ok, error, limit, note = CASES[case][0](*CASES[case][1:])
    assert ok, f"{case}: error {error:.4g}, limit {limit:.4g} {note} (KGEN_SEED={SEED})"


def pytest_generate_tests(metafunc):
    metafunc.parametrize("case", CASES)


def setup_module():
    if reason := why_no_card():
        import pytest

        pytest.skip(f"nothing proven: {reason}", allow_module_level=True)


def main():
    as_json = "--json" in sys.argv
    if "--captured" in sys.argv:
        captured_child()
    if reason := why_no_card():
        print(json.dumps({"unproven": reason}) if as_json else f"nothing proven: {reason}")
        return 3
    failed = 0
    for case, (run, *arguments) in CASES.items():
        if as_json:
            print(json.dumps({"running": case}), flush=True)
        start = time.monotonic()
        try:
            ok, error, limit, note = run(*arguments)
        except Exception as e:  # a failed launch is a failed case; the others still run
            ok, error, limit, note = False, float("nan"), 0.0, f"{type(e).__name__}: {e}"
        failed += not ok
        if as_json:
            row = {"case": case, "ok": bool(ok), "error": error, "limit": limit, "note": note}
            print(json.dumps(row | {"seconds": round(time.monotonic() - start, 3)}), flush=True)
        else:
            print(f"{'ok   ' if ok else 'WRONG'} {case:32s} error {error:.3g} limit {limit:.3g} {note}")
    if not as_json:
        print(f"{len(CASES) - failed} of {len(CASES)} cases right (KGEN_SEED={SEED})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
