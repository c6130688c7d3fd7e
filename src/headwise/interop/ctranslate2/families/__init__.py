"""One file per family that CTranslate2 has, named like the family: `build` makes its specification."""
