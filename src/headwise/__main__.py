"""`python -m headwise` is the command `headwise` (as torchrun calls it)."""

from headwise.cli.main import run

run()
