"""`mngr tmr init`: write down how this project's tests are run."""

from __future__ import annotations

from mngr import config, settings_edit
from mngr.cli import trusting
from mngr.cli.app import App
from mngr.cli.parser import Args
from mngr.cli.table import Column
from mngr.cli.tmr.starting import repository
from mngr.tmr.detect import look


def init(args: Args, app: App) -> int:
    """Keys that are set already stay as they are."""
    top = repository(app).top
    path = config.scope_path("project", app.fleet.host.dir, top)
    rows = []
    with trusting.changed_by_user(app, path):
        for guess in look(top):
            key = f"tmr.{guess.key}"
            is_set = bool(app.settings.explain(key))  # trusted or not
            rows.append({"key": key, "value": guess.value, "because": guess.because, "written": not is_set})
            if not is_set and not args.dry_run:
                settings_edit.set_value(path, key, guess.value, scope="project")
    if not rows and app.out.human:
        app.out.line("nothing to write: the tests are run with `python3 -m pytest`, without any preparation")
        return 0
    for row in rows:
        row["what"] = "kept as it is" if not row["written"] else "would be written" if args.dry_run else "written"
    columns = [
        Column("KEY", "key"),
        Column("VALUE", "value", flexible=True),
        Column("FOUND IN", "because"),
        Column("STATUS", "what"),
    ]
    app.out.emit_rows(rows, columns, envelope={"path": path, "settings": rows, "dry_run": args.dry_run})
    if not args.dry_run:
        app.out.note(f"in `{path}`; `mngr tmr --dry-run` tries it")
    return 0
