"""A hundred ways to smuggle a script, in every text that a study can carry; none is active, on page or in report."""

import json

import pytest

from nasbot.architecture import initial_pool
from nasbot.candidate import Candidate
from nasbot.page.html import report_html
from nasbot.plots.snapshot import Snapshot
from nasbot.trial import Cancelled, Failed, FailureCause, Forecast, History, Provenance, Scored, Trial
from tests.page.conftest import SETTINGS, serving, write_study

RUN = "window.__owned=(window.__owned||0)+1"
TAGS = (
    "<script>{0}</script>",
    "<img src=x onerror={0}>",
    "<svg onload={0}>",
    "<svg><script>{0}</script></svg>",
    "<body onload={0}>",
    "<iframe srcdoc='<script>parent.{0}</script>'></iframe>",
    "<iframe src='javascript:{0}'></iframe>",
    "<a href='javascript:{0}' autofocus onfocus={0}>x</a>",
    "<input autofocus onfocus={0}>",
    "<details open ontoggle={0}>",
    "<video src=x onerror={0}>",
    "<audio src=x onerror={0}>",
    "<object data='javascript:{0}'></object>",
    "<embed src='javascript:{0}'>",
    "<math href='javascript:{0}'>x</math>",
    "<style onload={0}></style>",
    "<link rel=stylesheet href=x onerror={0}>",
    "<marquee onstart={0}>",
    "<select autofocus onfocus={0}>",
    "<form action='javascript:{0}'><button autofocus>x</button></form>",
    "<meta http-equiv=refresh content='0;url=javascript:{0}'>",
    "<base href='javascript:{0}//'>",
    "<template><script>{0}</script></template>",
    "<svg><animate onbegin={0} attributeName=x dur=1s>",
    "<svg><use href='data:image/svg+xml,<svg onload={0}>'>",
)
BREAKS = (
    "</script>{0}",
    '">{0}',
    "'>{0}",
    "--><!--{0}",
    "]]>{0}",
    "</title>{0}",
    "</style>{0}",
    "\\u003c{0}",
    "`${{{0}}}",
)
OTHERS = (
    "javascript:{0}",
    "data:text/html,<script>{0}</script>",
    "{{{{constructor.constructor('{0}')()}}}}",
    "${{{0}}}",
    "';{0};//",
    '";{0};//',
    "\\';{0};//",
    "</script><script>{0}</script>",
    "<!--<script>{0}</script>",
    "<scr<script>ipt>{0}</scr</script>ipt>",
    "%3Cscript%3E{0}%3C/script%3E",
    "&lt;script&gt;{0}&lt;/script&gt;",
    "\u2028{0}\u2029",
    "__proto__",
    "constructor",
)


def payloads():
    """A hundred texts: every tag, some behind what would end the place they stand in."""
    tags = [tag.replace("{0}", RUN) for tag in TAGS]
    broken = [BREAKS[(i + k) % len(BREAKS)].replace("{0}", tag) for k in (1, 4, 7) for i, tag in enumerate(tags)]
    return [*tags, *broken[:60], *(text.replace("{0}", RUN) for text in OTHERS)]


PAYLOADS = payloads()


def hostile_history():
    """Every payload in messages, origins, forecasts, params, notes and details, as names and as values."""
    pool, trials = initial_pool("mlp-reg"), []
    for n, text in enumerate(PAYLOADS):
        origin = Provenance(
            searcher=text,
            parents=(n - 1,) if n else (),
            modifiers=(text, text),
            changes=(text,),
            of_study=text,
            seconds={text: 1.0, "deciding": 2.0},
        )
        forecast = Forecast(lower=0.1, median=0.5, upper=0.9, utility=1.0, utility_by_phase={text: 1.0}, repairs=text)
        details = {text: text, "metrics": {text: 1.0}, "parameters": 5, "log": text, "traceback": text}
        details["process"] = {"output": text, "peak_memory": 5, text: text}
        outcomes = (Scored(n / 10, details), Failed(FailureCause.EXCEPTION, text, details), Cancelled(text))
        trials.append(
            Trial(
                number=n,
                candidate=Candidate(pool[n % len(pool)], {text: text}),
                origin=origin,
                forecast=forecast,
                notes={text: {text: [text]}},
                attempts=1,
                started=float(n),
                finished=float(n + 1),
                rank=n,
                outcome=outcomes[n % 3 if n % 3 < 2 else 2],
            )
        )
    return History(tuple(trials))


SETTINGS_OF_THEIRS = {
    "searcher": {"name": PAYLOADS[0], "acquisition": PAYLOADS[1], PAYLOADS[2]: PAYLOADS[3]},
    "context": {text: text for text in PAYLOADS},
    "pool": PAYLOADS,
    "space": {"kind": PAYLOADS[4]},
}
ACTIVE = """document.querySelectorAll("main :is(script, iframe, object, embed, style)").length
  + document.querySelectorAll("main :is([onerror], [onload], [onfocus], [ontoggle])").length
  + [...document.querySelectorAll("a[href]")].filter(a => !/^(#|\\.\\.\\/)/.test(a.getAttribute("href"))).length"""
PAGES = ("overview", "trials", "map", "lineage", "surrogate", "compare", "about")


def walk(watched, base, trials):
    """Every page, and these trials; then nothing has run, and the texts stand there as texts."""
    page = watched.page
    for name in (*PAGES, *(f"trial/{n}" for n in trials)):
        watched.show(f"{base}#/{name}")
        assert page.evaluate("window.__owned === undefined"), f"{name}: a script ran"
        assert (
            page.locator("main script, main iframe, main object, main embed, main form[action], main style").count()
            == 0
        )
        assert page.locator("main [onerror], main [onload], main [onfocus], main [ontoggle]").count() == 0
    watched.show(f"{base}#/trial/1")
    assert PAYLOADS[1] in page.inner_text("pre >> nth=0"), "the text is shown as it is"


def test_there_are_a_hundred_of_them():
    assert len(PAYLOADS) == len(set(PAYLOADS)) == 100


def test_none_is_active_in_the_report(watched, tmp_path):
    name = "x<img src=x onerror=" + RUN + ">"
    snapshot = Snapshot(hostile_history(), name=name, settings=SETTINGS | SETTINGS_OF_THEIRS)
    html = report_html(snapshot, file="</script><script>" + RUN + "</script>", others=[snapshot])
    assert html.count("</script>") == 2, "its data and its script end where they should"
    path = tmp_path / "hostile.html"
    path.write_text(html, encoding="utf-8")
    walk(watched, path.as_uri(), range(len(PAYLOADS)))


def test_none_is_active_on_the_page(watched, tmp_path):
    name = "'onerror='" + RUN.replace("/", "") + "' x='<b>"
    write_study(tmp_path / f"{name}.sqlite", hostile_history(), **SETTINGS_OF_THEIRS)
    with serving(tmp_path) as served:
        watched.page.goto(served.url)
        assert watched.page.evaluate("window.__owned === undefined")
        watched.page.click("main td a")
        watched.settle()
        walk(watched, watched.page.url.split("#")[0], (0, 1, 2))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", 'a"b', "a,b\nc"])
def test_a_spreadsheet_runs_nothing_either(text):
    from csv import reader
    from io import StringIO

    from nasbot.page.tables import trials_csv

    trial = hostile_history()[1]
    history = History((Trial(**{**vars_of(trial), "number": 0, "rank": 0, "outcome": Failed(FailureCause.NAN, text)}),))
    rows = list(reader(StringIO("".join(trials_csv(history, ())))))
    cell = rows[1][rows[0].index("message")]
    assert cell.lstrip("'") == text.strip().splitlines()[0]
    assert not cell.startswith(("=", "+", "-", "@", "\t"))


def vars_of(trial):
    return {name: getattr(trial, name) for name in ("candidate", "attempts", "started", "finished")}


def test_data_survive_the_embedding():
    snapshot = Snapshot(hostile_history(), name="<x>")
    html = report_html(snapshot)
    block = html.split('id="nasbot-data">')[1].split("</script>")[0]
    data = json.loads(block)
    assert data["about"]["name"] == "<x>"
    assert data["trials"][1]["line"] == PAYLOADS[1][:200]
