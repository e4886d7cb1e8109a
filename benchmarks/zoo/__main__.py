"""Make models of the zoo: ``python -m benchmarks.zoo NAME... | --list | --all``."""

from __future__ import annotations

import click

from benchmarks import zoo
from benchmarks.zoo.activations import activations

_ALL = (*zoo.NAMES, *zoo.FUSION_MODELS, *zoo.SPARSE_MODELS)


@click.command()
@click.argument("names", nargs=-1)
@click.option("--list", "show", is_flag=True, help="List the models and exit.")
@click.option("--all", "every", is_flag=True, help="Make every model.")
@click.option("--check", is_flag=True, help="Also run each model and show its activations' range.")
def main(names: tuple[str, ...], show: bool, every: bool, check: bool) -> None:
    """Make the models NAMES (unless cached) and print their paths."""
    if show:
        for name in _ALL:
            click.echo(f"{name:20} {zoo.recipe(name).summary}")
        return
    if not names and not every:
        raise click.UsageError("name a model, or say --list or --all")
    unknown = [name for name in names if name not in _ALL]
    if unknown:
        raise click.UsageError(f"no model {unknown[0]!r}; there are: {', '.join(_ALL)}")
    for name in _ALL if every else names:
        try:
            path = zoo.path(name)
        except zoo.MissingPackageError as error:
            raise click.ClickException(f"{name}: {error}") from error
        click.echo(path)
        if check:
            found = activations(path, zoo.sample_inputs(name))
            low, high = min(found, key=lambda a: a.std), max(found, key=lambda a: a.std)
            click.echo(f"  std from {low.std:.3g} ({low.name}) to {high.std:.3g} ({high.name})")


if __name__ == "__main__":
    main()
