"""``trnspec audit``: every disagreement between sources, recorded or found."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import date
from pathlib import Path as FilePath
from typing import Any

import attrs
import click

from trnspec.api import registry
from trnspec.checks.credit import OUTCOMES, credited
from trnspec.checks.reconcile.audit import Audit, Disagreement, SourceValue, audit
from trnspec.checks.reconcile.hints import shown
from trnspec.checks.reconcile.hypotheses import extra_hypotheses
from trnspec.checks.reconcile.machines import MachineComparison, PropertyRow, compare
from trnspec.checks.reconcile.overview import Overview, is_at, overview, paths_of
from trnspec.checks.reconcile.proportions import Proportion, proportions
from trnspec.cli.common import catalog_option, working_graph
from trnspec.cli.complete import document_then_path, offering
from trnspec.cli.complete import paths as figure_paths
from trnspec.cli.help import documented, option
from trnspec.cli.render import (
    colored,
    emit,
    fitted,
    formats,
    full_option,
    print_sections,
    show,
    versioned_json,
    width,
)
from trnspec.diagnostics import did_you_mean, unknown_name
from trnspec.errors import UsageError
from trnspec.graph.currency import Age, ages, limit
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import claims_at
from trnspec.loading.host import neuron_ls, nvidia_smi
from trnspec.loading.host.machine import HostMachine, HostText
from trnspec.model.reflection import dotted
from trnspec.text_table import Block, Cell, Column, TextTable, escape, plural, table, wrapped

_VERDICTS = ("found", "unresolved", "rejected", "superseded", "rounded", "other-scope", "coarse", "word")
_LABEL = max(map(len, _VERDICTS))


@documented(
    "audit",
    ("trnspec audit", "A summary of the catalog:"),
    ("trnspec audit trainium2", "The disagreements on a chip, the most important first:"),
    ("trnspec audit trainium2 memory.bandwidth", "One figure, with every conflicting value:"),
    ("trnspec audit --verdict unresolved", "The disagreements that are not resolved:"),
    ("trnspec audit --host neuron-ls.json", "A machine, compared with the catalog:"),
    ("trnspec audit --stale --older-than 2y", "Values without a source of the last two years:"),
    ("trnspec audit --pages pages", "Values that the page of their source does not print:"),
)
@click.argument("names", nargs=-1, metavar="[NAME|PATH]...", shell_complete=document_then_path)
@option(
    "--verdict VERDICT verdicts",
    "Output",
    f"Only disagreements with this verdict: {', '.join(_VERDICTS)}. May be repeated.",
    multiple=True,
    shell_complete=offering(lambda _, __: _VERDICTS),
)
@full_option("--details")
@formats("text", "json", "markdown")
@option(
    "--host FILE",
    "Machine",
    "Compare a machine: what neuron-ls --json-output or nvidia-smi -q -x printed there; - for standard input.",
)
@option("--stale", "Age", "List the values whose newest source is older than --older-than.")
@option("--older-than AGE", "Age", "The limit of --stale in months or years, such as 18mo or 2y.  [default: 12mo]")
@option(
    "--pages DIR",
    "Pages",
    "Look up each value on the page of its source: DIR/SOURCE.txt, or DIR/SOURCE/DOCUMENT.txt.",
    type=click.Path(path_type=FilePath),
)
@catalog_option
def command(
    names: tuple[str, ...],
    verdicts: tuple[str, ...],
    format_: str,
    catalog: str | None,
    *,
    full: bool,
    **modes: Any,
) -> None:
    """Compare what different sources state of the same figure.

    A summary is printed first: how many figures agree and differ, and the most important disagreements. NAME restricts it
    to documents, PATH (such as memory.bandwidth) to figures and all paths below, --verdict to disagreements. Each of them
    prints the disagreements, in full where they fit a screen: adopted value, conflicting values with their sources, gap,
    likely causes, verdict and reason. Exit status 1: there is a disagreement that no document records.

    With --host, a machine is compared with the server that it is, or with NAME. Exit status 1: something differs. With
    --stale, values without a recent source are listed, and the exit status is 0. With --pages, values that the page of
    their source does not print are listed. Exit status 1: there is one.
    """
    _check_modes(names, judged=bool(verdicts), full=full, **modes)
    for verdict in verdicts:
        if verdict not in _VERDICTS:
            hint = did_you_mean(verdict, _VERDICTS) or f"the verdicts are {', '.join(_VERDICTS)}"
            raise UsageError(f"--verdict: {verdict!r} is not a verdict; {hint}")
    known = working_graph(catalog)
    if modes["host"] is not None:
        sys.exit(int(_compare(known, modes["host"], names[0] if names else None, format_)))
    documents, paths = _split(known, names)
    if modes["pages"] is not None:
        sys.exit(int(_list_unprinted(known, modes["pages"], documents, paths, format_)))
    if modes["stale"]:
        _list_stale(known, documents, paths, modes["older_than"] or "12mo", format_, full=full)
        return
    with extra_hypotheses(registry().explanations):
        result = audit(known, documents)
        ratios = [] if names or verdicts else proportions(known)
    if paths or verdicts:
        chosen = [d for d in result.disagreements if _chosen(d, paths, verdicts)]
        result = attrs.evolve(result, disagreements=tuple(chosen), views=())
    summary = overview(known, result.disagreements, documents, paths)
    if format_ == "json":
        click.echo(_json(result, ratios, summary))
    elif format_ == "markdown":
        print_sections([("", each) for each in _tables(result, ratios, summary)], format_)
    elif (names or verdicts) and not full:
        show(_screen(result, summary))
    else:
        lines = _summary(result, summary)
        if full:
            lines += ["", *_details(result.disagreements), *_more(result, ratios)]
        else:
            lines += _important(summary)
            lines += ["", _next(len(result.disagreements))] if result.disagreements else []
        show(["\n".join(lines).rstrip()])
    sys.exit(int(any(d.verdict == "found" for d in result.disagreements)))


def _check_modes(
    names: tuple[str, ...],
    *,
    judged: bool,
    full: bool,
    host: str | None,
    stale: bool,
    older_than: str | None,
    pages: FilePath | None,
) -> None:
    """Raise an error for options of --stale, --pages, --host and the audit that do not go together."""
    aged = stale or older_than is not None
    narrowed = judged or full
    if pages is not None and (aged or narrowed or host is not None):
        raise UsageError("--pages goes with NAME and PATH, without --verdict, --full, --host and --stale")
    if aged and (not stale or judged or host is not None):
        raise UsageError("--stale and --older-than go together, without --verdict and --host")
    if host is not None and (narrowed or len(names) > 1):
        raise UsageError(
            "--host compares a machine with one server; it goes with one NAME, without --verdict and --full"
        )


def _split(known: Graph, names: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The documents and the figure paths among some names.

    Raises:
        UnknownNameError: A name is neither.
    """
    documents: set[str] = set()
    paths: list[str] = []
    claimed = {dotted(path[1:]) for node in known for path in claims_at(node)}
    every = sorted({*figure_paths(), *claimed})
    for name in names:
        path = name.removeprefix("spec.")
        if name in known.aliases or name in known:
            documents.add(known.named(name).name)
        elif any(p == path or p.startswith(f"{path}.") for p in every):
            paths.append(path)
        else:
            names_and_paths = [*known.nodes, *known.aliases, *every]
            raise unknown_name(f"{name!r} is neither a document nor a figure path", name, names_and_paths)
    return frozenset(documents), tuple(paths)


def _chosen(disagreement: Disagreement, paths: tuple[str, ...], verdicts: tuple[str, ...]) -> bool:
    on_path = any(is_at(path, paths) for path in paths_of(disagreement))
    return on_path and (not verdicts or disagreement.verdict in verdicts)


def _gap(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}".replace("%", " %")


def _side(side: SourceValue) -> str:
    dated = f", {side.as_of}" if side.as_of else ""
    return f"{side.source}{dated}"


def _screen(result: Audit, summary: Overview) -> Sequence[Block]:
    """The summary, and disagreements of some documents: as many in full as fit, the others in a line each.

    Unresolved disagreements, and those that no document records, are always printed.
    """
    ordered = summary.important
    head = [*_summary(result, summary), "", *([] if ordered else ["No disagreements."])]
    size = max((len(d.verdict) for d in ordered), default=0)
    titles = [_headline(each, size) for each in ordered]
    every, needed = len(ordered), sum(each.verdict in _OPEN for each in ordered)

    def page(shown: int) -> list[Block]:
        """A page that first has a line for each of some disagreements, then more and more in full."""
        in_full, hidden = max(shown - every, 0), max(every - max(shown, needed), 0)
        briefs = titles[in_full : every - hidden]
        about = [
            *(["sources, causes and reasons of all"] if briefs else []),
            *([plural(hidden, "explained disagreement")] if hidden else []),
            *(["the sums of each source"] if result.views else []),
        ]
        more = ["", wrapped("--full: ", ", ".join(about), width())] if about else []
        return ["\n".join([*head, *_details(ordered[:in_full]), *briefs, *more]).rstrip()]

    return fitted(page, 2 * every)


def _details(disagreements: Iterable[Disagreement]) -> list[str]:
    lines: list[str] = []
    for each in disagreements:
        lines += [*_entry(each), ""]
    return lines


def _more(result: Audit, ratios: list[Proportion]) -> list[str]:
    """Proportions and sums."""
    lines: list[str] = []
    if ratios:
        lines += ["Proportions that differ between siblings; none of them is an error:", ""]
    for proportion in ratios:
        lines.append(proportion.name)
        lines += [f"  {s!s:>12}  {s.of}{f' ({s.note})' if s.note else ''}" for s in proportion.shares]
        lines += [wrapped("cause: ", proportion.cause, width()), ""]
    if result.views:
        lines.append("Sums among the figures of each source:")
        for view in result.views:
            head = f"  {view.source} ({view.as_of}): "
            lines.append(f"{head}{view.closing} consistent, {len(view.contradicting)} not")
            lines += [wrapped("      ", sentence, width()) for sentence in view.contradicting]
    return lines


_MOST_IMPORTANT = 3
"""Disagreements in the summary."""


def _summary(result: Audit, summary: Overview) -> list[str]:
    """Summary of a comparison: its counts and the most important disagreements."""
    by_verdict: Counter[str] = Counter()
    for each in result.disagreements:
        by_verdict[each.verdict] += len(paths_of(each))
    head = f"{plural(summary.figures, 'figure')} of {plural(summary.documents, 'document')}"
    lines = [wrapped("", f"{head}: {summary.values:,} values of {plural(summary.sources, 'source')}", width())]
    listed = ", ".join(f"{v} at {n}" for v, n in by_verdict.most_common() if v in _RESOLVED)
    rows = [
        ("agrees", "agree", summary.agreeing, "every value agrees, also after rounding"),
        ("superseded", "resolved", summary.resolved, listed and f"every other value is explained: {listed}"),
        ("unresolved", "unresolved", summary.unresolved, "it is not known which value is right"),
        ("found", "not recorded", summary.found, "no document records the disagreement"),
    ]
    for verdict, word, count, text in rows:
        number = f"{count:>7,} {word:<12}"
        # The colour must not count as width.
        line = wrapped(f"{number}  ", text if count else "", width()).rstrip()
        lines.append(colored(verdict, number.rstrip()) + line[len(number.rstrip()) :])
    return lines


def _important(summary: Overview) -> list[str]:
    if len(summary.important) <= 1:
        return []
    disagreements = summary.important[:_MOST_IMPORTANT]
    size = max(len(d.verdict) for d in disagreements)
    return ["Most important:", *(_headline(each, size) for each in disagreements)]


def _headline(each: Disagreement, size: int) -> str:
    """One disagreement in a line: its verdict, filled to a size, and its values."""
    said = " or ".join(dict.fromkeys(c.says for c in each.conflicting))
    adopted = "" if each.adopted is None else f"{each.adopted.says.partition(' = ')[0]}, not "
    if each.verdict == "unresolved":
        adopted = adopted.replace(", not ", " or ")
    gap = f" ({_gap(each.gap)})" if each.gap is not None else ""
    text = f"{each.name} {each.at.replace('spec.', '')}: {adopted}{said}{gap}"
    # The colour must not count as width.
    lines = wrapped(" " * (size + 4), text, width())
    return f"  {colored(each.verdict, f'{each.verdict:<{size}}')}  {lines[size + 4 :]}"


_RESOLVED = ("superseded", "rejected", "other-scope")
_OPEN = ("unresolved", "found")


def _next(disagreements: int) -> str:
    """Hint that names the command for the details."""
    choices = "trnspec audit NAME [PATH], trnspec audit --verdict unresolved"
    return wrapped("details: ", f"{choices}; trnspec audit --full prints all {disagreements}", width())


def _entry(each: Disagreement) -> list[str]:
    adopted = "nothing is adopted" if each.adopted is None else f"{each.adopted.says} ({_side(each.adopted)})"
    lines = [f"{each.name}  {each.at.replace('spec.', '')}", wrapped(_head("adopted"), adopted, width())]
    said = [r.says for r in each.conflicting]
    values = " against ".join(said) if each.is_pair else " = ".join(sorted(set(said)))
    head = _head(each.verdict).replace(each.verdict, colored(each.verdict, each.verdict))
    lines.append(wrapped(head, f"{values}  {_gap(each.gap)}".rstrip(), width()))
    for claim in each.conflicting:
        says = f"{claim.says}: " if each.is_pair else ""
        where = f", {claim.where}" if claim.where else ""
        lines.append(wrapped(_head(""), f"{says}{_side(claim)}{where}", width()))
    if each.rounding != "-":
        lines.append(_head("rounding") + each.rounding)
    for index, cause in enumerate(shown(each.causes)):
        lines.append(wrapped(_head("or".rjust(_LABEL) if index else "cause"), cause, width()))
    if each.rounding == "cannot explain it" and not each.causes:
        lines.append(_head("cause") + "none of the known causes closes the gap")
    if each.reason:
        lines.append(wrapped(_head("reason"), each.reason, width()))
    return lines


def _head(label: str) -> str:
    """The head of a line of an entry, as wide as that of the longest verdict."""
    return f"  {label:<{_LABEL}}  "


def _json(result: Audit, ratios: list[Proportion], summary: Overview) -> str:
    counts = {field.name: getattr(summary, field.name) for field in attrs.fields(Overview)}
    important = [{"name": d.name, "at": d.at, "verdict": d.verdict} for d in summary.important[:_MOST_IMPORTANT]]
    data: dict[str, Any] = {
        "summary": {**counts, "important": important},
        "disagreements": [attrs.asdict(d) for d in result.disagreements],
        "proportions": [
            {
                "name": p.name,
                "cause": p.cause,
                "shares": [{"of": s.of, "value": str(s), "verdict": s.note} for s in p.shares],
            }
            for p in ratios
        ],
        "views": [attrs.asdict(v) for v in result.views],
    }
    return versioned_json(data)


def _tables(result: Audit, ratios: list[Proportion], summary: Overview) -> list[TextTable]:
    counts = [field.name for field in attrs.fields(Overview) if field.name != "important"]
    names = [{"agreeing": "agree", "found": "not recorded"}.get(name, name) for name in counts]
    tables = [
        table([Column(name, right=True) for name in names], [[getattr(summary, name) for name in counts]]),
        table(
            ["figure", "adopted", "conflicting values", "gap", "rounding", "cause", "verdict and reason"],
            [
                (
                    f"{each.name} {each.at.replace('spec.', '')}",
                    None if each.adopted is None else f"{each.adopted.says} ({_side(each.adopted)})",
                    "; ".join(f"{r.says} ({_side(r)})" for r in each.conflicting),
                    _gap(each.gap),
                    each.rounding,
                    "; or ".join(shown(each.causes)) or None,
                    f"{each.verdict}: {each.reason}" if each.reason else each.verdict,
                )
                for each in result.disagreements
            ],
        ),
        table(
            ["proportion", "quotients", "cause"],
            [(p.name, "; ".join(f"{s} ({s.of})" for s in p.shares), p.cause) for p in ratios],
        ),
        table(
            ["source", "date", "consistent sums", "inconsistent sums"],
            [(v.source, v.as_of, v.closing, "; ".join(v.contradicting) or None) for v in result.views],
        ),
    ]
    return [each for number, each in enumerate(tables) if number < 2 or each.rows]  # the first two are always there


# Machines.


def machine(file: str) -> HostMachine:
    """The machine that a file describes; ``-`` is standard input.

    Raises:
        UsageError: It cannot be read, or is not the output of neuron-ls or nvidia-smi.
    """
    if file == "-":
        if sys.stdin is None:
            raise UsageError("there is no standard input to read")
        source = HostText.read("<stdin>", sys.stdin.buffer)
    else:
        source = HostText.read(file)
    # XML begins with "<"; both may begin with a byte-order mark.
    first = source.text().lstrip()[:1]
    return nvidia_smi.read(source) if first == "<" else neuron_ls.read(source)


def _compare(graph: Graph, file: str, name: str | None, format_: str) -> bool:
    """Print how a machine compares with a catalog; true if something differs.

    Raises:
        UsageError: The description cannot be read, or the document is not a server.
    """
    result = compare(graph, machine(file), name)
    emit(format_, lambda: _machine_page(result), lambda: _machine_rows(result), lambda: _about_machine(result))
    return result.differs


def _machine_page(result: MachineComparison) -> Sequence[Block]:
    described = result.machine
    differing = sum(row.outcome == "differs" for row in result.rows)
    compared = sum(row.outcome in ("agrees", "differs") for row in result.rows)
    head = f"{escape(described.file)}: {plural(len(described.devices), 'device')}, as {described.tool} lists them"
    target = result.server or " or ".join(result.candidates)
    target = target or (f"chip {result.chip}, no server" if result.chip else "nothing")
    lines = [
        wrapped("", head, width()),
        wrapped("compared with  ", f"{target} ({escape(result.reason)})", width()),
        f"result         {compared} compared, {differing} differ{'s' if differing == 1 else ''}",
    ]
    if result.candidates:
        lines.append("               trnspec audit NAME --host FILE compares with one of them")
    if described.driver:
        lines.append(wrapped("driver         ", f"{escape(described.driver)}, which no catalog lists", width()))
    if described.unknown:
        listed = ", ".join(f"{escape(key)} (line {line})" for key, line in described.unknown.items())
        lines.append(wrapped("unknown fields ", listed, width()))
    blocks: list[Block] = ["\n".join(lines)]
    if result.rows:
        columns = [
            Column("property", keep=True),
            Column("machine", wrap=True, keep=True),
            Column("catalog", wrap=True, keep=True),
            Column("outcome", keep=True),
            Column("source", wrap=True),
        ]
        rows: list[tuple[Cell, ...]] = [
            (r.property, _shown(r.machine), _shown(r.catalog), r.outcome, r.source or None) for r in result.rows
        ]
        blocks.append(table(columns, rows, "--format json"))
    notes = [f"{row.property}: {row.note}" for row in result.rows if row.note]
    if notes:
        blocks.append("\n".join(wrapped("note: ", escape(note), width()) for note in notes))
    return blocks


def _shown(text: str | None) -> str | None:
    return None if text is None else escape(text)


def _machine_rows(result: MachineComparison) -> TextTable:
    names = [field.name for field in attrs.fields(PropertyRow)]
    return table(names, [attrs.astuple(row) for row in result.rows])


def _about_machine(result: MachineComparison) -> dict[str, Any]:
    described = result.machine
    return {
        "tool": described.tool,
        "file": described.file,
        "devices": len(described.devices),
        "server": result.server or None,
        "chip": result.chip or None,
        "reason": result.reason,
        "candidates": list(result.candidates),
        "driver": described.driver or None,
        "unknown": [{"name": key, "line": line} for key, line in described.unknown.items()],
    }


# Ages.

_AGE_COLUMNS = (
    Column("document", keep=True),
    Column("figure", keep=True),
    Column("value", wrap=True),
    Column("source"),
    Column("date", keep=True),
    Column("months", right=True, keep=True),
    Column("sources", right=True, importance=-2),
)


def _list_stale(
    graph: Graph, documents: Iterable[str], paths: Iterable[str], older_than: str, format_: str, *, full: bool
) -> None:
    """Print the values whose newest source is older than a limit, oldest first.

    Raises:
        UsageError: The limit is not one.
    """
    most, today = limit(older_than), date.today().isoformat()  # noqa: DTZ011  # pages are dated without a time zone
    known = [age for age in ages(graph, today, documents) if is_at(age.at, paths)]
    stale = sorted((age for age in known if age.months > most), key=lambda age: (-age.months, age.name, age.at))
    emit(
        format_,
        lambda: fitted(lambda shown: _stale_page(stale, shown, len(known), most), len(stale), full=full),
        lambda: _stale_table(stale),
        lambda: {"as_of": today, "older_than_months": most, "values": len(known)},
    )


def _stale_page(stale: Sequence[Age], shown: int, known: int, most: int) -> Sequence[Block]:
    summary = f"{len(stale):,} of {known:,} values have no source of the last {most} months."
    hidden = [f"--full: {len(stale) - shown:,} more values"] if shown < len(stale) else []
    return [_stale_table(stale[:shown]), *hidden, summary] if stale else [summary]


def _stale_table(stale: Sequence[Age]) -> TextTable:
    rows = tuple((a.name, a.at, a.value, a.source, a.as_of, a.months, a.sources) for a in stale)
    return TextTable(_AGE_COLUMNS, rows, hint="--format json")


def _list_unprinted(
    graph: Graph, folder: FilePath, documents: Collection[str], paths: Iterable[str], format_: str
) -> bool:
    """Print the values that the pages do not print, and how many they print; true if there are such values.

    Raises:
        UsageError: The folder has no pages.
    """
    columns = [Column("document", keep=True), Column("figure", keep=True), Column("says", wrap=True)]
    columns += [Column("source", wrap=True, keep=True), Column("where", wrap=True)]
    found = [(c, p) for c, p in credited(graph, folder) if (not documents or c.of in documents) and is_at(c.at, paths)]
    counts = {outcome: sum(printed == outcome for _, printed in found) for outcome in OUTCOMES}
    missing = [c for c, printed in found if printed == "no"]
    rows = table(columns, [(c.of, c.at, c.says, c.source, c.where) for c in missing], "--format json")
    sources = len({c.source for c, _ in found})
    summary = (
        f"{len(found):,} values of {plural(sources, 'source')}: {counts['line']:,} printed at the "
        f"named place, {counts['page']:,} elsewhere on the page, {counts['no']:,} not printed."
    )
    emit(
        format_,
        lambda: [*([rows] if missing else []), wrapped("", summary, width())],
        lambda: rows,
        lambda: {"values": len(found), "printed": counts},
    )
    return bool(missing)
