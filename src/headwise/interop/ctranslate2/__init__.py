"""Models as CTranslate2 directories."""
