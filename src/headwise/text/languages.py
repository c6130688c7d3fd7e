"""Language codes: the base language of a code, its English name, and whether it is written with spaces."""

from __future__ import annotations

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi",
    "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean",
    "la": "Latin", "lt": "Lithuanian", "lv": "Latvian", "nb": "Norwegian", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "sr": "Serbian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "vi": "Vietnamese", "yue": "Cantonese", "zh": "Chinese",
}  # fmt: skip

# Base languages written without spaces between words; text/scripts.py lists the scripts.
WITHOUT_SPACES = frozenset({"zh", "yue", "ja", "th", "lo", "my", "km"})


def subtags(code: str) -> list[str]:
    """Splits a language code at hyphens or underscores: language first, then script and region if given."""
    return code.replace("_", "-").split("-")


def base_language(code: str) -> str:
    """Returns the language of a code without script and region, in lower case: zh for zh-Hans, zh_CN and ZH."""
    return subtags(code)[0].lower()


def name_of(code: str) -> str:
    """Returns the English name of a language, or the code itself if the name is unknown."""
    return NAMES.get(base_language(code), code)


def uses_spaces(code: str) -> bool:
    """Tells whether a language is written with spaces between words; unknown languages are assumed to be."""
    return base_language(code) not in WITHOUT_SPACES
