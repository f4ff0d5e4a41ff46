"""The directive `plots`, with a title and the names of reports in bench/results: a picture of each, by the scripts of
bench/ that draw them, of which one shows the GPU that is chosen at the top of the page. Telephones get narrow ones."""
import pathlib
import sys

from docutils import nodes
from docutils.parsers.rst import Directive
from pages import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import hopper
import models
import speed_up

sys.path.pop(0)  # which has a folder torch/

FOLDER = "plots"  # of the site
GPUS = ("h100", "h200")


def drawn(name):
    """The pictures of a report by the name of their files."""
    if name.endswith("_models"):
        return {f"{name}.svg": models.picture(*map(hopper.report, models.reports_of(name)))}
    report = hopper.report(name)
    return {f"{name}.svg": speed_up.picture(report), f"{name}_narrow.svg": speed_up.picture(report, speed_up.NARROW)}


class Switch(Directive):
    """Which GPU the pictures are of. The style sheet does the rest."""

    def run(self):
        labels = "".join(f'<label><input type="radio" name="gpu" value="{gpu}"{" checked" * (gpu == GPUS[0])}> '
                         f'{gpu.upper()}</label>' for gpu in GPUS)
        return [nodes.raw("", f'<fieldset class="gpus"><legend>GPU</legend>{labels}</fieldset>', format="html")]


class Plots(Directive):
    """`plots:: WHAT` of the reports that the body names, one for each GPU. For another GPU a sentence says so."""
    required_arguments, final_argument_whitespace, has_content = 1, True, True

    def run(self):
        env, figures = self.state.document.settings.env, []
        up, of = "../" * env.docname.count("/") + FOLDER, {name.split("_")[0]: name for name in self.content}
        for gpu in GPUS:
            if gpu not in of:
                figures.append(f'<p class="of-{gpu}">Not measured on an {gpu.upper()}.</p>')
                continue
            env.app.dualgemm_plots.add(of[gpu])
            wide, *narrow = drawn(of[gpu])
            sources = "".join(f'<source media="(max-width: 40em)" srcset="{up}/{file}">' for file in narrow)
            figures.append(f'<p class="of-{gpu}"><picture>{sources}<img src="{up}/{wide}" '
                           f'alt="{self.arguments[0]}, on an {gpu.upper()}"></picture></p>')
        return [nodes.raw("", "".join(figures), format="html")]


def write(app, error):
    folder = pathlib.Path(app.outdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name in app.dualgemm_plots:
        for file, text in drawn(name).items(): (folder / file).write_text(text, encoding="utf-8")


def setup(app):
    app.dualgemm_plots = set()
    app.add_directive("gpus", Switch)
    app.add_directive("plots", Plots)
    app.connect("build-finished", write)
