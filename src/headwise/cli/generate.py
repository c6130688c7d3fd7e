"""`headwise generate`: text from a language model."""

from __future__ import annotations

import json
import secrets
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwise.cli.options import Model
from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.decoding.generation import Generation


def generate(
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROMPT]...", help="Text to continue; may be repeated. [default: standard input]"),
    ] = None,
    model: Model = "",
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="Maximum number of tokens to generate.")] = 200,
    temperature: Annotated[
        float, typer.Option("--temperature", help="Below 1 less varied, above 1 more; 0 takes the most likely token.")
    ] = 1.0,
    top_k: Annotated[int, typer.Option("--top-k", help="Sample from the k most likely tokens; 0 is all.")] = 0,
    top_p: Annotated[
        float, typer.Option("--top-p", help="Sample from the most likely tokens that add up to this probability.")
    ] = 1.0,
    min_p: Annotated[
        float, typer.Option("--min-p", help="Exclude tokens below this fraction of the highest probability.")
    ] = 0.0,
    repetition_penalty: Annotated[
        float, typer.Option("--repetition-penalty", help="Above 1 makes tokens that occurred before less likely.")
    ] = 1.0,
    stop: Annotated[
        list[str] | None, typer.Option("--stop", help=r"Stop before this text; may be repeated. \n is a line break.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="The same seed gives the same text. [default: random]")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", "-n", help="Number of texts per prompt.")] = 1,
    stream: Annotated[bool, typer.Option("--stream", help="Print the text while it is generated.")] = False,
    engine: Annotated[
        str,
        typer.Option("--engine", help="torch, or ctranslate2: faster, int8, at --temperature 0 only."),
    ] = "torch",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per text, with all details.")] = False,
) -> None:
    """Generate text with a language model.

    Prints only the generated text, not the prompt. A line break at the end of standard input is not part of the prompt.

    Examples:

    - `headwise generate --model runs/shakespeare-char/model "ROMEO:" --stream`
    - `headwise generate --model runs/my-lm/model "Once upon a time" --temperature 0.8 --top-p 0.95 --seed 1`
    - `headwise generate --model runs/my-lm/model --samples 3 --stop '\\n' --json < prompt.txt`
    """
    if not model:
        raise UsageError("no model: give --model DIR, such as RUN/model")
    if stream and (samples > 1 or as_json or len(prompts or ()) > 1):
        raise UsageError("--stream prints a single text: give one prompt, without --samples and --json")
    from headwise.workflows.generate import open_generator, read_prompt, window_notice

    generator = open_generator(model, engine, token_scores=as_json)
    prompts = prompts or ["" if sys.stdin.isatty() else read_prompt(sys.stdin.buffer)]
    for notice in dict.fromkeys(window_notice(generator, prompt, max_tokens) for prompt in prompts):
        if notice:
            print(f"headwise: note: {notice}", file=sys.stderr)
    seed = secrets.randbelow(2**31) if seed is None else seed
    options: dict[str, Any] = {
        "max_tokens": max_tokens, "stop": [_unescaped(text) for text in stop or ()], "temperature": temperature,
        "top_k": top_k, "top_p": top_p, "min_p": min_p, "repetition_penalty": repetition_penalty, "seed": seed,
    }  # fmt: skip
    if stream:
        for piece in generator.stream(prompts[0], **options):
            print(piece, end="", flush=True)
        print()
        return
    written = generator.generate_each(prompts, samples=samples, **options)
    texts = [(prompt, one) for prompt, found in zip(prompts, written, strict=True) for one in found]
    for number, (prompt, one) in enumerate(texts, start=1):
        if as_json:
            print(json.dumps(_as_dict(prompt, one, seed), ensure_ascii=False))
            continue
        if len(texts) > 1:
            print(f"--- {number} of {len(texts)}")
        print(one.text)


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _as_dict(prompt: str, one: Generation, seed: int) -> dict[str, Any]:
    return {
        "prompt": prompt,
        "text": one.text,
        "stopped": one.stopped,
        "tokens": len(one.ids),
        "log_prob": round(sum(one.log_probs), 6),
        "seed": seed,
    }
