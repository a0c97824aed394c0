"""The page, its Markdown and its JSON: complete, escaped, the same again, and without a request to anyone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from made_outcomes import seeds
from made_runs import make_run, make_study, report_on
from page_tags import Tags, drawings

from ilde.config import QUICK
from ilde.reports.charts import keys
from ilde.reports.comparison import compare
from ilde.reports.curves import band, shares
from ilde.reports.documents import document
from ilde.reports.films import Film
from ilde.reports.gathering import gather
from ilde.reports.markup import Html, element, join
from ilde.reports.outcome_files import save_outcomes
from ilde.reports.page import COLOURS, DASHES, Report, line_styles, render, term_style
from ilde.reports.tables import all_tables, markdown
from ilde.reports.thinned import Curve

NASTY = "<script>alert('&\"1\"')</script>"


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.partition("<body>")[2]).split())


def test_the_page_shows_scores_verdicts_and_controls(report: Report) -> None:
    text = text_of(render(report))
    assert "The demonstrator scores 900. Shown to imitate: ilde, of 2 methods." in text
    assert "1,010 ± 10 985 to 1,035 1.12 3 of 3 505 81,920 imitates" in text
    assert "not shown to imitate shuffled" in text
    for control in ("random", "constant", "entropy", "shuffled", "wrong-demos"):
        assert control in text
    assert "not in the table: ilde seed 9 (failed at 81,920 of 400,000 steps)" in text
    assert "ilde seed 9, failed" in text


def test_the_page_tells_where_its_numbers_come_from(report: Report) -> None:
    text = text_of(render(report))
    for fact in ("torch 2.11.0", "0123456789ab with changes", "a CPU, Linux, 2 cores", "a" * 64, "ilde train --out=a"):
        assert fact in text
    assert "cuda" not in text


def test_curves_terms_and_strips_are_drawn(report: Report) -> None:
    tags = Tags(render(report))
    classes = [attributes.get("class") or "" for _, attributes in tags.seen]
    # Seven rows and the failed run, then the seven's evaluations; each once in the chart and once in its legend.
    assert sum("line " in c for c in classes) == 2 * (8 + 7)
    assert classes.count("strip") == 8
    assert [c for c in classes if c.startswith("share")] == ["share t-vail", "share t-giril", "share t-entropy"] * 4
    assert not tags.open


def test_the_page_asks_for_nothing_and_runs_nothing(report: Report) -> None:
    page = render(report)
    tags = Tags(page)
    assert "script" not in {tag for tag, _ in tags.seen}
    assert not re.search(r"https?:|url\(|@import|\bon\w+=", page)
    links = [attributes[name] for _, attributes in tags.seen for name in ("src", "href") if name in attributes]
    assert links == ["data:,"]
    policies = [attributes for _, attributes in tags.seen if attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policies[0]["content"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:"


def test_the_page_is_small(report: Report) -> None:
    assert len(render(report)) < 150_000


def test_the_page_says_why_a_difference_has_no_interval() -> None:
    runs = seeds("ilde", (1.0, 1.0)) + seeds("constant", (0.0, 0.0)) + seeds("entropy", (0.0,))
    text = text_of(render(Report("A study", compare(runs), (), {}, {})))
    assert "without any spread: no interval" in text
    assert "with one seed: no interval" in text


def test_a_control_at_two_budgets_is_drawn_in_two_ways() -> None:
    runs = seeds("ilde", (1, 2)) + seeds("constant", (1, 2)) + seeds("constant", (1, 2), env_steps=100)
    styles = line_styles(compare(runs))
    assert (styles["constant (100 steps)"], styles["constant (400,000 steps)"]) == ("k2", "k2 again-1")
    legend = keys([("constant", f"line {styles['constant (400,000 steps)']}")])
    assert 'class="key k2 again-1"' in legend


def test_a_colour_that_comes_again_is_dashed_in_the_chart_and_in_its_legend() -> None:
    curve = Curve((0, 100), (1.0, 2.0))
    rows = 4 * COLOURS
    runs = [run for k in range(rows) for run in seeds("ilde", (1, 2), variant=(f"a={k:02}",), training=curve)]
    runs += [run for steps in (100, 200) for run in seeds("expert", (1, 2), env_steps=steps, training=curve)]
    comparisons = compare(runs)
    styles = line_styles(comparisons)
    assert [styles[f"ilde (a={k})"] for k in ("00", "12", "24", "47")] == ["c0", "c0 lap-1", "c0 lap-2", "c11 lap-3"]
    assert {style for label, style in styles.items() if "expert" in label} == {"reference", "reference lap-1"}
    assert len(set(styles.values())) == len(styles) == rows + 2
    page = render(Report("A study", comparisons, (), {}, {}))
    lines = [attributes.get("class") for tag, attributes in Tags(page).seen if tag == "path"]
    assert lines.count("line c0 lap-1") == 2
    patterns = re.findall(r"\.lap-[1-3] \{ --dash: ([^;]+);", page)
    assert len(set(patterns)) == DASHES - 1


def test_films_stand_in_the_page(report: Report) -> None:
    page = render(replace(report, films={0: [Film("ilde, seed 1", (b"one", b"two"), b"film")]}))
    sources = [(tag, attributes["src"]) for tag, attributes in Tags(page).seen if "src" in attributes]
    assert sources == [
        ("img", "data:image/webp;base64,b25l"),
        ("img", "data:image/webp;base64,dHdv"),
        ("video", "data:video/mp4;base64,ZmlsbQ=="),
    ]
    told = [
        attributes.get("alt") or attributes.get("aria-label")
        for _, attributes in Tags(page).seen
        if "src" in attributes
    ]
    assert told == [
        "ilde, seed 1: picture 1 of 2 of an episode, in their order",
        "ilde, seed 1: picture 2 of 2 of an episode, in their order",
        "Film of an episode: ilde, seed 1",
    ]


def test_every_drawing_that_is_not_told_stands_beside_its_words(report: Report) -> None:
    page = render(report)
    assert len(drawings(page)) == 2 + 3 + 7  # curves, parts of rewards, strips
    silent = [a for tag, a in Tags(page).seen if tag == "svg" and a.get("role") != "img"]
    assert {a["aria-hidden"] for a in silent} == {"true"}
    assert len(silent) == page.count('<li class="key ')


def test_whatever_a_run_says_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    config = replace(QUICK, env=NASTY, demos=f"{NASTY}|x:0.5", ppo=replace(QUICK.ppo, advantages=NASTY))  # type: ignore[arg-type]
    make_run(tmp_path / "runs", config=config)
    hostile = report_on(tmp_path, title=NASTY)
    page = render(hostile)
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(&#x27;&amp;&quot;1&quot;&#x27;)&lt;/script&gt;") >= 5
    assert not Tags(page).open
    words = markdown(NASTY, all_tables(hostile.comparisons, hostile.aggregates))
    assert "<script" not in words
    assert "|x" not in words.replace("\\|x", "")


def test_a_page_from_the_outcomes_file_is_the_same_to_the_byte(study: Path, report: Report, tmp_path: Path) -> None:
    save_outcomes(gather([study]).outcomes, tmp_path / "outcomes.json")
    again = report_on(tmp_path / "outcomes.json")
    assert render(again) == render(report)
    assert document(again.comparisons, again.aggregates) == document(report.comparisons, report.aggregates)


def test_unfinished_runs_alone_still_have_a_page(tmp_path: Path) -> None:
    make_run(tmp_path / "a", score=None, state="running")
    text = text_of(render(report_on(tmp_path)))
    assert "ilde seed 0, running" in text
    assert "No run here" in text


def test_a_run_with_nothing_but_a_configuration_has_a_page(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", score=None, state="running")
    for journal in ("metrics.jsonl", "timing.jsonl"):
        (run / journal).unlink()
    assert "running at 81,920" in text_of(render(report_on(tmp_path)))


def test_tables_read_well_as_markdown(report: Report) -> None:
    lines = markdown("A study", all_tables(report.comparisons, report.aggregates)).splitlines()
    assert lines[0] == "# A study"
    assert "## HalfCheetah-v5 from 50% of halfcheetah-v5/weak-v0: final return of greedy actions; preset quick" in lines
    assert "| demonstrator | - | - | 900 | - | - | - | - |  |" in lines
    assert "| ilde | 81,920 | 3 | 1,010 ± 10 | 985 to 1,035 | 1.12 | 3 of 3 | 505 | imitates |" in lines
    # Against `entropy`: 1,010 + 190, standard error sqrt(2 * 100 / 3), four degrees of freedom, quantile 2.776.
    assert any(line.startswith("| ilde | 1,177 to 1,223 |") for line in lines)
    assert {line.count("|") for line in lines if line.startswith("|")} == {10, 7}


def test_the_document_holds_every_number(report: Report) -> None:
    (task,) = document(report.comparisons, report.aggregates)["tasks"]
    assert (task["task"], task["demonstrator"], task["greedy"]) == ("HalfCheetah-v5", 900.0, True)
    row = task["rows"][0]
    assert (row["method"], row["seeds"], row["scores"]) == ("ilde", (0, 1, 2), (1000.0, 1010.0, 1020.0))
    assert (row["imitates"], row["verdict"], row["sampled"]) == (True, "imitates", 505.0)
    assert row["differences"]["constant"]["probability_of_improvement"] == 1
    assert row["differences"]["constant"]["mean"] == 1100
    assert task["rows"][1]["imitates"] is False
    assert task["rows"][2]["imitates"] is None


def test_two_tasks_have_a_table_together(tmp_path: Path) -> None:
    make_study(tmp_path / "one", seeds=2)
    make_study(tmp_path / "two", seeds=2, config=replace(QUICK, env="Hopper-v5"), recording="b" * 64)
    both = report_on(tmp_path)
    assert "All tasks" in text_of(render(both))
    first = all_tables(both.comparisons, both.aggregates)[0]
    assert first.columns[:7] == ("method", "steps", "tasks", "runs", "mean ratio", "IQM ratio", "95% interval")
    assert first.rows[0][:7] == ("ilde", "81,920", "2", "4", "1.12", "1.12", "-")
    assert first.notes == ("an interval takes 5 seeds on each task that are not all alike",)
    (entry, *_) = document(both.comparisons, both.aggregates)["all_tasks"]
    assert (entry["env_steps"], entry["interval"]) == ((81_920, 81_920), None)


def test_where_nothing_could_be_pooled_a_note_says_so_without_a_table(tmp_path: Path) -> None:
    make_run(tmp_path / "one")
    make_run(tmp_path / "two", config=replace(QUICK, env="Hopper-v5", num_envs=4), recording="b" * 64)
    apart = report_on(tmp_path)
    note = (
        "not pooled, as reward, preset, settings and steps are the same on no other task: "
        "ilde on HalfCheetah-v5, ilde on Hopper-v5"
    )
    words = markdown("A study", all_tables(apart.comparisons, apart.aggregates))
    title = "## all tasks: scores over the demonstrator's"
    assert words.startswith(f"# A study\n\n{title}\n\n- {note}\n\n## HalfCheetah-v5 from")
    page = render(apart)
    assert f"<li>{note}</li>" in page
    assert 'class="across"' not in page


def test_text_is_escaped_unless_it_is_html() -> None:
    assert element("p", "<b>", Html("<b>"), title='"', class_=None) == '<p title="&quot;">&lt;b&gt;<b></p>'
    assert join("&", Html("&")) == "&amp;&"
    assert element("img", src="x") == '<img src="x"/>'


def test_a_term_nobody_knows_gets_no_class_of_its_own() -> None:
    assert (term_style("vail"), term_style('x" onload="')) == ("t-vail", "t-other")


def test_a_band_is_the_mean_with_students_interval() -> None:
    found = band([Curve((0, 10), (0.0, 10.0)), Curve((0, 5, 20), (2.0, 2.0, 8.0))])
    assert found is not None
    assert (found.env_steps[0], found.env_steps[-1]) == (0, 10)
    # At 10 the second seed is at 4: mean 7, deviation sqrt(18), quantile 12.706 over sqrt(2).
    assert found.mean[[0, -1]] == pytest.approx([1, 7])
    assert found.spread is not None
    assert found.spread[-1] == pytest.approx(12.7062 * 3, abs=1e-3)
    assert found.extent == (0, 10)


def test_one_seed_has_a_curve_without_a_band() -> None:
    found = band([Curve((0, 10), (0.0, 10.0))])
    assert found is not None
    assert found.spread is None


def test_seeds_that_never_meet_have_no_curve() -> None:
    assert band([]) is None
    assert band([Curve()]) is None
    assert band([Curve((0, 5), (1.0, 1.0)), Curve()]) is None
    assert band([Curve((0, 5), (1.0, 1.0)), Curve((5, 9), (1.0, 1.0))]) is None


def test_shares_are_parts_of_one(report: Report) -> None:
    found = shares(report.comparisons[0].rows[0].outcomes)
    assert found is not None
    parts = {name: values[-1] for name, values in found[1].items()}
    assert parts == pytest.approx({"vail": 1 / 12, "giril": 10 / 12, "entropy": 1 / 12}, abs=1e-4)
    assert shares(report.comparisons[0].rows[1].outcomes) is None  # one term alone needs no picture
