"""`eigengame demo`: the main job on data that comes with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.options import Json
from eigengame.cli.running import guarded, keep_compiled
from eigengame.cli.showing import facts_of, show, show_components, show_ending, show_json
from eigengame.cli.targets import refuse_target

EXAMPLES = ("eigengame demo", "eigengame demo --open")


@guarded
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The .html file to write.")] = Path(
        "eigengame-demo.html"
    ),
    open_: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    json: Json = False,
) -> None:
    """Fit scikit-learn's handwritten digits, show the components, and write a report to look at."""
    refuse_target(output, (".html", ".htm"), force=True)
    from sklearn.datasets import load_digits

    from eigengame import EigenGamePCA
    from eigengame.report import write_report

    keep_compiled()
    digits = load_digits()
    pca = EigenGamePCA(8, batch_size=256, tol=1e-3, random_state=0).fit(digits.data)
    write_report(
        pca,
        output,
        data=digits.data,
        labels=digits.target,
        image_shape=(8, 8),
        title="Handwritten digits",
    )
    if json:
        show_json({"output": output} | facts_of(pca))
    else:
        show(f"{len(digits.data)} images of 8 x 8 pixels, 8 components, no step size")
        show_components(pca)
        show_ending(pca)
        show(f"Written: {output}: open it in a browser.")
    if open_:
        typer.launch(str(output))
