"""How the documentation is built: ``sphinx-build -W -n docs docs/_build``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_ubunye import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "airflow-provider-ubunye"
author = "the contributors of airflow-provider-ubunye"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "airflow-provider-ubunye"
html_show_copyright = False
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
python_use_unqualified_type_names = True

OURS = "airflow_provider_ubunye."


def name_inside_the_package(app: Sphinx, env: Any, node: Any, contnode: Any) -> Any:
    """Resolve what a docstring calls by a short or relative name; text where the reference has no page for it.

    Docstrings are written for readers of the code, where ``BatchFinished`` needs no module before it.
    """
    if node.get("refdomain") != "py":
        return None
    target = str(node.get("reftarget", "")).lstrip(".")
    last = target.rpartition(".")[2]
    python = env.get_domain("py")
    found = {name for name in python.objects if name.startswith(OURS) and name.rpartition(".")[2] == last}
    if len(found) == 1:
        name = found.pop()
        known = python.objects[name]
        from sphinx.util.nodes import make_refnode

        return make_refnode(app.builder, node["refdoc"], known.docname, known.node_id, contnode, name)
    return contnode


def no_constructor(app: Sphinx, what: str, name: str, *rest: Any) -> tuple[str, str] | None:
    """Leave out how to make what nobody makes: a run is given by ``batch_run``."""
    return ("", "") if name == f"{OURS}api.BatchRun" else None


def setup(app: Sphinx) -> None:
    """Sphinx's hook."""
    app.connect("autodoc-process-signature", no_constructor)
    app.connect("missing-reference", name_inside_the_package)
