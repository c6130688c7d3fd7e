"""What training chooses for a recipe and its data, with a vocabulary that is no larger than the text allows."""

from __future__ import annotations

from pathlib import Path

from headwise.config.recipe import with_values
from headwise.config.schema import Recipe
from headwise.errors import VocabularyTooLarge
from headwise.tasks import find_task
from headwise.tasks.automatic import Choice, DataFacts, choose
from headwise.tasks.interface import Progress
from headwise.tasks.text_data import make_tokenizers

SIZE = "tokenizer.size"


def choices_for(
    recipe: Recipe, base: Path, facts: DataFacts, cache: Path, progress: Progress | None = None
) -> tuple[Recipe, list[Choice]]:
    """The recipe with what it leaves out chosen by its task, and the choices that were taken.

    Only training a tokenizer tells how large it can be; it stays in `cache`, where preparation finds it.
    """
    task, tell = find_task(recipe.task_name), progress or (lambda stage, done, total: None)
    recipe, taken = choose(recipe, task.automatic(recipe, facts))
    text = task.tokenizer_text(recipe, base) if any(choice.key == SIZE for choice in taken) else None
    while text is not None:
        try:
            make_tokenizers(recipe, base, cache, *text, tell, task.special_tokens(recipe))
            break
        except VocabularyTooLarge as error:
            fits = Choice(SIZE, error.most, "no more tokens occur twice")
            taken = [fits if choice.key == SIZE else choice for choice in taken]
            recipe = with_values(recipe, {SIZE: error.most})
    return recipe, taken
