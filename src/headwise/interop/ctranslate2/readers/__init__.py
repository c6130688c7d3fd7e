"""One file per model of ours that CTranslate2 directories become: READS names specifications, `read` reads them."""
