"""`eigengame demo`: a fit and a report on the digits dataset of scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.fitting import use_compilation_cache
from eigengame.cli.options import Json
from eigengame.cli.output import model_summary, print_components, print_json, print_outcome
from eigengame.cli.output_paths import check_output_path

EXAMPLES = ("eigengame demo", "eigengame demo --open")


@handle_errors
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The .html file to write.")] = Path(
        "eigengame-demo.html"
    ),
    open_: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    json: Json = False,
) -> None:
    """Fit scikit-learn's handwritten digits, print the components, and write a report."""
    check_output_path(output, (".html", ".htm"), force=True)
    from sklearn.datasets import load_digits

    import_jax()
    from eigengame import EigenGamePCA
    from eigengame.report import write_report

    use_compilation_cache()
    digits = load_digits()
    # The game, which such small data does not need.
    pca = EigenGamePCA(8, algorithm="remembered", batch_size=256, tol=1e-3, random_state=0)
    pca.fit(digits.data)
    write_report(
        pca,
        output,
        data=digits.data,
        labels=digits.target,
        image_shape=(8, 8),
        title="Handwritten digits",
    )
    if json:
        print_json({"output": output} | model_summary(pca))
    else:
        print(f"{len(digits.data)} images of 8 x 8 pixels, 8 components, no step size to tune")
        print_components(pca)
        print_outcome(pca)
        print(f"Written: {output}: open it in a browser.")
    if open_:
        typer.launch(str(output))
